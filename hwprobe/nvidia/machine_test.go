package nvidia

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// smi is a Runner whose nvidia-smi prints this, by what it is asked for; what is not set is not understood. It is found
// under one name only, and notes what it was asked.
type smi struct {
	csv, xml, list string
	code           int               // exit code of the CSV query
	stderr         string            // of the CSV query
	path           string            // empty: nvidia-smi on the PATH
	unknown        string            // a field that it does not know, or several with commas between
	only           map[string]string // CSV by the value of -i
	tegrastats     string
	asked          *[][]string
}

func (s smi) Run(ctx context.Context, name string, args ...string) (source.Output, error) {
	if name == "tegrastats" && s.tegrastats != "" {
		<-ctx.Done() // it never ends by itself
		return source.Output{Stdout: []byte(s.tegrastats)}, ctx.Err()
	}
	if path := s.path; name != path && (path != "" || name != "nvidia-smi") {
		return source.Output{}, &exec.Error{Name: name, Err: exec.ErrNotFound}
	}
	if s.asked != nil {
		*s.asked = append(*s.asked, args)
	}
	out := s.answer(args)
	if out.Stdout == nil {
		out.Stdout, out.ExitCode = []byte("Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n"), 2
	}
	return out, nil
}

func (s smi) answer(args []string) source.Output {
	text := func(t string) []byte {
		if t == "" {
			return nil
		}
		return []byte(t)
	}
	switch {
	case slices.Contains(args, "-x"):
		return source.Output{Stdout: text(s.xml)}
	case slices.Contains(args, "-L"):
		return source.Output{Stdout: text(s.list)}
	}
	query := args[slices.IndexFunc(args, func(a string) bool { return strings.HasPrefix(a, "--query-gpu=") })]
	for _, field := range strings.Split(s.unknown, ",") {
		if field != "" && slices.Contains(strings.Split(strings.TrimPrefix(query, "--query-gpu="), ","), field) {
			return source.Output{Stdout: fmt.Appendf(nil, "Field %q is not a valid field to query.\n\n", field), ExitCode: 2}
		}
	}
	if args[0] == "-i" && s.only != nil {
		return source.Output{Stdout: text(s.only[args[1]])}
	}
	return source.Output{Stdout: append([]byte{}, s.csv...), Stderr: []byte(s.stderr), ExitCode: s.code}
}

// pc is an ordinary PC with this nvidia-smi and these files.
func pc(tool source.Runner, files fstest.MapFS) source.Machine {
	return source.Machine{OS: "linux", Arch: "amd64", Files: files, Commands: tool, Calls: source.Calls{}}
}

// find probes, and holds what is true of all findings.
func find(t testing.TB, m source.Machine) hwprobe.Findings {
	t.Helper()
	f := Probe(t.Context(), m, hwprobe.Host{})
	checkConsistent(t, f)
	return f
}

func checkConsistent(t testing.TB, f hwprobe.Findings) {
	t.Helper()
	ids := map[string]bool{}
	for _, d := range f.Devices {
		if ids[d.ID] || d.ID == "" || d.State == "" || d.Vendor != hwprobe.NVIDIA {
			t.Errorf("device %+v: no id, one that is there twice, or no state", d)
		}
		ids[d.ID] = true
		if d.Pool != hwprobe.HostPool && d.Pool != d.ID {
			t.Errorf("device %s draws on %s", d.ID, d.Pool)
		}
		if d.Pool == d.ID && !slices.ContainsFunc(f.Pools, func(p hwprobe.Pool) bool { return p.ID == d.ID }) {
			t.Errorf("device %s has no pool", d.ID)
		}
	}
	pools := map[string]bool{}
	for _, p := range f.Pools {
		total, knowsTotal := p.TotalBytes.Value()
		free, knowsFree := p.FreeBytes.Value()
		if pools[p.ID] || knowsTotal != (p.TotalSource != "") || knowsFree != (p.FreeSource != "") {
			t.Errorf("pool %+v: there twice, a number without source or a source without number", p)
		}
		if knowsTotal && (total == 0 || free > total) {
			t.Errorf("pool %s: impossible total %d, free %d", p.ID, total, free)
		}
		pools[p.ID] = true
	}
	for _, w := range f.Warnings {
		if w.Code == "" || w.Message == "" || w.Next == "" || w.Device != "" && !ids[w.Device] {
			t.Errorf("warning %+v does not say what is wrong, what to do or about what", w)
		}
	}
	if _, err := json.Marshal(f); err != nil {
		t.Error(err)
	}
}

func warned(f hwprobe.Findings) []hwprobe.WarningCode {
	var all []hwprobe.WarningCode
	for _, w := range f.Warnings {
		all = append(all, w.Code)
	}
	return all
}

// checkPools compares the pools with lines of "id total free", in MiB or "?".
func checkPools(t *testing.T, f hwprobe.Findings, want ...string) {
	t.Helper()
	mebibytes := func(b hwprobe.Bytes) string {
		n, known := b.Value()
		if !known {
			return "?"
		}
		return fmt.Sprint(n >> 20)
	}
	var got []string
	for _, p := range f.Pools {
		got = append(got, p.ID+" "+mebibytes(p.TotalBytes)+" "+mebibytes(p.FreeBytes))
	}
	if !slices.Equal(got, want) {
		t.Errorf("pools\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// onPCI is a card as the PCI bus shows it.
func onPCI(address, driver, status string) fstest.MapFS {
	dir := "sys/bus/pci/devices/" + address + "/"
	uevent := "PCI_CLASS=30000\nPCI_ID=10DE:25A0\nPCI_SLOT_NAME=" + address + "\n"
	if driver != "" {
		uevent = "DRIVER=" + driver + "\n" + uevent
	}
	return fixture.Write(fstest.MapFS{}, dir+"uevent", uevent, dir+"power/runtime_status", status+"\n", dir+"power_state", map[bool]string{true: "D3cold\n", false: "D0\n"}[status == "suspended"])
}

func joined(trees ...fstest.MapFS) fstest.MapFS {
	all := fstest.MapFS{}
	for _, tree := range trees {
		for name, file := range tree {
			all[name] = file
		}
	}
	return all
}

// header is the first line of what a driver prints that understands all fields.
const header = "uuid, name, pci.bus_id, driver_version, memory.total [MiB], memory.free [MiB], utilization.gpu [%], temperature.gpu, " +
	"power.draw [W], mig.mode.current, addressing_mode, compute_cap\n"

// csvRow is a row below header.
func csvRow(uuid, name, bus, total, free, mig, mode, capability string) string {
	return strings.Join([]string{uuid, name, bus, "580.95", total, free, "3 %", "41", "20.00 W", mig, mode, capability}, ", ") + "\n"
}
