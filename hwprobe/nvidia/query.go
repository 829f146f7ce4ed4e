package nvidia

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// paths are where nvidia-smi is looked for: on the PATH, and where it lies on systems that give a PATH with it to shells
// only (WSL, NixOS) or that have it elsewhere (Windows with a driver from before 2019).
var paths = map[string][]string{
	"linux":   {"nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi", "/run/current-system/sw/bin/nvidia-smi"},
	"windows": {"nvidia-smi", `C:\Windows\System32\nvidia-smi.exe`, `C:\Program Files\NVIDIA Corporation\NVSMI\nvidia-smi.exe`},
}

// fields are what is asked of each device. The first ones have existed for a decade. Memory is not the last one, so that a
// line that is cut short has no shorter number.
var fields = []string{"uuid", "name", "pci.bus_id", "driver_version", "memory.total", "memory.free", "utilization.gpu",
	"temperature.gpu", "power.draw", "mig.mode.current", "addressing_mode", "compute_cap"}

// since are the first drivers that are known to understand a field. One unknown field fails a whole query, and asking
// again costs a process each time.
var since = map[string]int{"mig.mode.current": 450, "compute_cap": 495, "addressing_mode": 530}

// successors are fields that stand in for one that a driver does not understand any more.
var successors = map[string]string{"driver_version": "kmd_version"}

// tool is the nvidia-smi of one machine.
type tool struct {
	runner source.Runner
	paths  []string // the first that works is kept
	driver int      // major version, 0 where the kernel does not tell: on Windows, in WSL
}

func newTool(m source.Machine) *tool {
	major, _, _ := strings.Cut(source.ReadText(m.Files, "sys/module/nvidia/version"), ".")
	driver, _ := strconv.Atoi(major) // not told: 0
	return &tool{runner: m.Commands, paths: paths[m.OS], driver: driver}
}

// run runs nvidia-smi where it is. One that is not installed is exec.ErrNotFound.
func (t *tool) run(ctx context.Context, args ...string) (out source.Output, err error) {
	err = exec.ErrNotFound
	for i, name := range t.paths {
		out, err = t.runner.Run(ctx, name, args...)
		if errors.Is(err, fs.ErrNotExist) { // a path that is not there, unlike a name that is not on the PATH
			err = fmt.Errorf("%w: %w", exec.ErrNotFound, err)
		}
		if err == nil && out.ExitCode == 127 { // a shell's way to say the same
			err = fmt.Errorf("%s: %w", name, exec.ErrNotFound)
		}
		if !errors.Is(err, exec.ErrNotFound) {
			t.paths = t.paths[i : i+1]
			break
		}
	}
	return out, err
}

// reply is what a query gave.
type reply struct {
	rows []row
	said string // what was printed, on either stream, that is no row
	code int    // exit code
	err  error  // it did not run to its end
}

// query asks for the cards at these addresses, for all where none is given. It asks for less where the driver is too old,
// or too new, to understand a field.
func (t *tool) query(ctx context.Context, only []string) reply {
	asked := slices.DeleteFunc(slices.Clone(fields), func(f string) bool { return t.driver != 0 && t.driver < since[f] })
	for {
		out, err := t.run(ctx, target(only, "--query-gpu="+strings.Join(asked, ","), "--format=csv")...)
		if i := slices.Index(asked, refused(out)); err == nil && i >= 0 && len(asked) > 1 {
			if successor, has := successors[asked[i]]; has {
				asked[i] = successor
			} else {
				asked = slices.Delete(asked, i, i+1)
			}
			continue
		}
		if err != nil { // the last line may be half a line
			out.Stdout = out.Stdout[:bytes.LastIndexByte(out.Stdout, '\n')+1]
		}
		rows, rest := parseCSV(string(out.Stdout))
		return reply{rows: rows, said: strings.TrimSpace(rest + "\n" + string(out.Stderr)), code: out.ExitCode, err: err}
	}
}

// target restricts a query to cards, so that others are not woken.
func target(only []string, args ...string) []string {
	if len(only) == 0 {
		return args
	}
	return append([]string{"-i", strings.Join(only, ",")}, args...)
}

var refusedField = regexp.MustCompile(`Field "([^"]+)" is not a valid field to query`)

// refused is the field that the driver does not understand, empty when it understands all.
func refused(out source.Output) string {
	if match := refusedField.FindSubmatch(slices.Concat(out.Stdout, out.Stderr)); match != nil {
		return string(match[1])
	}
	return ""
}

// details reads what the CSV does not give, of the cards at these addresses, of all where none is given. It costs the tool
// far more than a CSV (netdata#10362).
func (t *tool) details(ctx context.Context, only []string) ([]gpu, error) {
	out, err := t.run(ctx, target(only, "-q", "-x")...)
	return parseXML(out.Stdout), err
}

// list reads which MIG instances there are by name. No other output has their UUIDs.
func (t *tool) list(ctx context.Context) []listed {
	out, err := t.run(ctx, "-L")
	if err != nil {
		return nil
	}
	return parseList(string(out.Stdout))
}
