package durable

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var table = flag.String("table", "", "write what the benchmarks measured into this file")

// series is what was measured in rounds.
type series []float64

func (s series) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// show is the median, with the range.
func (s series) show(format string) string {
	if len(s) < 2 {
		return fmt.Sprintf(format, s.median())
	}
	return fmt.Sprintf(format+" ("+format+"–"+format+")", s.median(), slices.Min(s), slices.Max(s))
}

// measured is the rows of the table so far. Benchmarks run one after the other; one that is repeated replaces its rows.
var measured []struct{ what, value, promise string }

func note(what, value, promise string) {
	row := struct{ what, value, promise string }{what, value, promise}
	for i := range measured {
		if measured[i].what == what {
			measured[i] = row
			return
		}
	}
	measured = append(measured, row)
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && *table != "" {
		if err := writeTable(*table); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const (
	tableBegins = "<!-- measured: written by make bench-durability -->\n"
	tableEnds   = "<!-- /measured -->\n"
)

// writeTable puts what was measured into its place in the page.
func writeTable(path string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(page), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the table", path)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s, on %s.\n\n| what | measured | promised |\n|---|--:|--:|\n", time.Now().UTC().Format("2006-01-02"), thisMachine())
	for _, r := range measured {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.what, r.value, r.promise)
	}
	return os.WriteFile(path, []byte(before+tableBegins+b.String()+tableEnds+after), 0o644)
}

// thisMachine says what was measured on, and how busy it was.
func thisMachine() string {
	cpu := "an unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		if _, rest, ok := strings.Cut(string(info), "model name"); ok {
			name, _, _ := strings.Cut(rest, "\n")
			cpu = strings.TrimLeft(name, "\t :")
		}
	}
	out := fmt.Sprintf("%s, %d cores for this, %s/%s, %s", cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		out += ", load average at the end " + strings.Join(strings.Fields(string(load))[:3], ", ")
	}
	if commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output(); err == nil {
		out += ", commit " + strings.TrimSpace(string(commit))
	}
	return out
}
