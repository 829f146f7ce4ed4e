package probe

import (
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/shirou/gopsutil/v3/common"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/host"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// fixedHost is a host with known facts.
type fixedHost hwprobe.Host

// machine is one made up of files, a vendor's tools and a host.
func machine(files fs.FS, tools source.Runner, h fixedHost) source.Machine {
	return source.Machine{OS: "linux", Arch: h.Arch, Files: files, Commands: tools, Calls: source.Calls{
		host.CallHost: func(context.Context, ...string) (any, error) { return hwprobe.Host(h), nil },
	}}
}

// realHost is one whose host is read from the system, or from what the context says in its place.
func realHost(files fs.FS, tools source.Runner) source.Machine {
	return source.Machine{OS: runtime.GOOS, Arch: runtime.GOARCH, Files: files, Commands: tools, Calls: host.Calls()}
}

// bigHost has more memory than any fixture's device wants of it.
func bigHost(arch string) fixedHost {
	return fixedHost{OS: "linux", Arch: arch, TotalBytes: hwprobe.Known[uint64](124 << 30), AvailableBytes: hwprobe.Known[uint64](120 << 30)}
}

// printed is a Runner whose nvidia-smi prints the same to every query; absent is one without nvidia-smi.
type printed source.Output

func (p printed) Run(context.Context, string, ...string) (source.Output, error) {
	return source.Output(p), nil
}

type absent struct{}

func (absent) Run(_ context.Context, name string, _ ...string) (source.Output, error) {
	return source.Output{}, &exec.Error{Name: name, Err: exec.ErrNotFound}
}

// meminfo makes the real host reader read a recorded /proc/meminfo.
func meminfo(t *testing.T, text string) context.Context {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("gopsutil reads a recorded /proc on Linux only")
	}
	_, text, _ = strings.Cut("\n"+text, "\nMemTotal") // recordings begin with a comment or a command
	proc := t.TempDir()
	if err := os.WriteFile(filepath.Join(proc, "meminfo"), []byte("MemTotal"+text), 0o600); err != nil {
		t.Fatal(err)
	}
	return context.WithValue(t.Context(), common.EnvKey, common.EnvMap{common.HostProcEnvKey: proc})
}

// recording says how a fixture becomes the machine that it was recorded on. Each vendor's are in its own file,
// index_<vendor>_test.go, beside the rows that no probe reads (with the reason) and the answers that the index has wrong.
type recording struct {
	pattern string // of the fixture's name, see path.Match
	// probe returns a report per machine, or per way in which the fixture may have reached a probe.
	probe func(t *testing.T, file string) []hwprobe.Report
}

// answer is what is right about a fixture, a value per device in the order of the fixture: bytes, "?" for unknown, "-" for
// not told by this row.
type answer struct {
	devices int
	total   []string
	free    []string
	unified []string // "yes" or "no"
	why     string   // where it differs from the index: the argument
}

// recordings, noInput and answers of all vendors. The first recording whose pattern matches is taken.
var (
	recordings = slices.Concat(hostRecordings, nvidiaRecordings, amdRecordings, intelRecordings, appleRecordings, windowsRecordings)
	noInput    = merged(hostNoInput, nvidiaNoInput, amdNoInput, intelNoInput, appleNoInput, windowsNoInput)
	answers    = merged(hostAnswers, nvidiaAnswers, amdAnswers, intelAnswers, appleAnswers, windowsAnswers)
)

func merged[V any](parts ...map[string]V) map[string]V {
	all := map[string]V{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// readIndex returns the answer of each row, the argued ones in place of those that the index has wrong.
func readIndex(t *testing.T) map[string]answer {
	t.Helper()
	index := map[string]answer{}
	lines := strings.Split(strings.TrimSpace(fixture.Text(t, "index.tsv")), "\n")
	for _, line := range lines[1:] {
		column := strings.Split(line, "\t")
		a, argued := answers[column[0]]
		if argued && a.why == "" {
			t.Errorf("%s: the answer differs from the index without a reason", column[0])
		}
		if !argued {
			a.devices, _ = strconv.Atoi(column[3])
			a.total, a.free, a.unified = values(column[4]), values(column[5]), values(column[6])
		}
		index[column[0]] = a
	}
	return index
}

func values(cell string) []string {
	list := strings.Split(cell, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// of is the i-th value; one value stands for all.
func of(list []string, i int) string {
	if len(list) == 1 {
		i = 0
	}
	if i >= len(list) {
		return "-"
	}
	return list[i]
}

// TestRightAnswers compares a probe of every recorded machine with the right answer in index.tsv.
func TestRightAnswers(t *testing.T) {
	for file, want := range readIndex(t) {
		t.Run(file, func(t *testing.T) {
			if reason, none := noInput[file]; none {
				if reason == "" {
					t.Error("no reason why no probe reads it")
				}
				return
			}
			k := slices.IndexFunc(recordings, func(r recording) bool { ok, _ := path.Match(r.pattern, file); return ok })
			if k < 0 {
				t.Fatal("nothing says how it becomes a machine, nor why it is no input of a probe")
			}
			reports := recordings[k].probe(t, file)
			if len(reports) == 0 {
				t.Fatal("no report")
			}
			for _, r := range reports {
				checkConsistent(t, r)
				checkAnswer(t, r, want)
			}
		})
	}
}

func checkAnswer(t *testing.T, r hwprobe.Report, want answer) {
	t.Helper()
	usable := usableDevices(r)
	if len(usable) != want.devices {
		t.Fatalf("%d devices, want %d: %+v", len(usable), want.devices, usable)
	}
	if want.devices == 0 {
		checkPool(t, r, hwprobe.HostPool, of(want.total, 0), of(want.free, 0))
		return
	}
	for i, d := range usable {
		checkPool(t, r, d.Pool, of(want.total, i), of(want.free, i))
		if right := of(want.unified, i); right != "-" && d.Integrated != hwprobe.Known(right == "yes") {
			t.Errorf("%s: integrated %v, want %s", d.ID, d.Integrated, right)
		}
	}
}

// usableDevices leaves out devices that are known of only because something says that they are lost.
func usableDevices(r hwprobe.Report) []hwprobe.Device {
	var usable []hwprobe.Device
	for _, d := range r.Devices {
		if d.State != hwprobe.StateLost {
			usable = append(usable, d)
		}
	}
	return usable
}

func checkPool(t *testing.T, r hwprobe.Report, id, total, free string) {
	t.Helper()
	p, found := r.Pool(id)
	if !found {
		t.Fatalf("no pool %s in %+v", id, r.Pools)
	}
	for _, c := range []struct {
		name, want string
		got        hwprobe.Bytes
	}{{"total", total, p.TotalBytes}, {"free", free, p.FreeBytes}} {
		want := c.want
		switch want {
		case "-": // not what this fixture is about
			continue
		case "MemTotal":
			want = r.Host.TotalBytes.String()
		case "MemAvailable":
			want = r.Host.AvailableBytes.String()
		case "?":
			want = "unknown"
		}
		if c.got.String() != want {
			t.Errorf("pool %s: %s %v, want %s", id, c.name, c.got, c.want)
		}
	}
}

// checkConsistent holds what is true of every report.
func checkConsistent(t *testing.T, r hwprobe.Report) {
	t.Helper()
	for _, p := range r.Pools {
		total, knowsTotal := p.TotalBytes.Value()
		free, knowsFree := p.FreeBytes.Value()
		if knowsTotal != (p.TotalSource != "") || knowsFree != (p.FreeSource != "") {
			t.Errorf("pool %+v: a number without source, or a source without number", p)
		}
		if knowsTotal && (total == 0 || free > total) {
			t.Errorf("pool %s: impossible total %d, free %d", p.ID, total, free)
		}
	}
	for _, d := range r.Devices {
		if _, found := r.Pool(d.Pool); !found || d.ID == "" || d.State == "" {
			t.Errorf("device %+v has no id, state or pool", d)
		}
	}
	for _, w := range r.Warnings {
		if w.Code == "" || w.Message == "" || w.Next == "" {
			t.Errorf("warning %+v does not say what is wrong or what to do", w)
		}
	}
	text, err := json.Marshal(r)
	checkSchema(t, text)
	var back hwprobe.Report
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || !reflect.DeepEqual(r, back) {
		t.Errorf("JSON does not give the report back: %v\n%s", err, text)
	}
}

func TestIndexNamesEveryFixture(t *testing.T) {
	entries, err := os.ReadDir("../testdata")
	if err != nil {
		t.Fatal(err)
	}
	index := readIndex(t)
	for _, e := range entries {
		if _, known := index[e.Name()]; e.Name() != "index.tsv" && !known {
			t.Errorf("%s has no row in index.tsv, so nothing tests it", e.Name())
		}
	}
	for _, named := range []map[string]string{noInput} {
		for file := range named {
			if _, known := index[file]; !known {
				t.Errorf("%s is named as no input and is not in the index", file)
			}
		}
	}
}
