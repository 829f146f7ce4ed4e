package probe

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/shirou/gopsutil/v3/common"
	"golang.org/x/tools/txtar"

	"github.com/loopkeeper/loopkeeper/hwprobe"
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

func readFixture(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "../testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// tree is a recorded file system, with files added that the recording left out.
func tree(t testing.TB, name string, added ...string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for _, f := range txtar.Parse([]byte(readFixture(t, name))).Files {
		files[f.Name] = &fstest.MapFile{Data: f.Data}
	}
	for i := 0; i < len(added); i += 2 {
		files[added[i]] = &fstest.MapFile{Data: []byte(added[i+1])}
	}
	return files
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

// missingHeaders are the headers of recordings that have none; every query of a probe has one.
var missingHeaders = map[string]string{
	"nvidia-smi-jetson-addressing.query.csv": "addressing_mode, memory.total [MiB], name\n",
	"nvidia-smi-vgpu-h100l.query.csv":        "clocks.current.sm [MHz], memory.total [MiB], name\n",
}

// corrected are answers of the index that its own fixture contradicts.
var corrected = map[string]string{
	// The recording says "MemAvailable: 24016524 kB", which is 24592920576 bytes; 24225292288 occurs nowhere in it.
	"host-no-gpu-2core-vm.txt": "24592920576",
}

// probeFixture probes the machine or machines that a fixture was recorded on.
func probeFixture(t *testing.T, name string) []hwprobe.Report {
	t.Helper()
	none := fstest.MapFS{}
	switch {
	case name == "amd-sysfs-strixhalo-gtt96.txtar": // reconstructed without the files that say which device it is
		dir := "sys/class/drm/card1/device/"
		root := tree(t, name, dir+"vendor", "0x1002\n", dir+"uevent", "DRIVER=amdgpu\nPCI_ID=1002:1586\nPCI_SLOT_NAME=0000:c5:00.0\n")
		return []hwprobe.Report{Probe(t.Context(), machine(root, absent{}, bigHost("amd64")))}
	case strings.HasSuffix(name, ".txtar"):
		return []hwprobe.Report{Probe(t.Context(), machine(tree(t, name), absent{}, bigHost("amd64")))}
	case strings.HasPrefix(name, "nvidia-err-"):
		text := []byte(readFixture(t, name)) // which stream it came on was not recorded
		return []hwprobe.Report{
			Probe(t.Context(), machine(none, printed{Stdout: text, ExitCode: 9}, bigHost("amd64"))),
			Probe(t.Context(), machine(none, printed{Stderr: text, ExitCode: 9}, bigHost("amd64"))),
		}
	case strings.Contains(name, "gb10") && strings.HasSuffix(name, ".csv"):
		ctx := meminfo(t, readFixture(t, "gb10.meminfo.txt"))
		return []hwprobe.Report{Probe(ctx, realHost(none, printed{Stdout: []byte(readFixture(t, name))}))}
	case strings.HasSuffix(name, ".csv"):
		var reports []hwprobe.Report
		for _, body := range machines(name, readFixture(t, name)) {
			out := printed{Stdout: []byte(missingHeaders[name] + body)}
			reports = append(reports, Probe(t.Context(), machine(none, out, bigHost("amd64"))))
		}
		return reports
	}
	ctx := meminfo(t, readFixture(t, name))
	return []hwprobe.Report{Probe(ctx, realHost(none, absent{}))}
}

// machines splits the one recording that has a line each of two machines.
func machines(name, text string) []string {
	if name == "nvidia-smi-jetson-addressing.query.csv" {
		return strings.Split(strings.TrimSpace(text), "\n")
	}
	return []string{text}
}

// TestRightAnswers compares a probe of every recorded machine with the right answer in index.tsv.
func TestRightAnswers(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(readFixture(t, "index.tsv")), "\n")
	for _, line := range lines[1:] {
		column := strings.Split(line, "\t")
		file, devices, total, free, unified := column[0], column[3], column[4], column[5], column[6]
		if right, wrong := corrected[file]; wrong {
			free = right
		}
		t.Run(file, func(t *testing.T) {
			for i, r := range probeFixture(t, file) {
				checkConsistent(t, r)
				usable := usableDevices(r)
				want, err := strconv.Atoi(strings.Split(devices, "+")[0])
				if err != nil || len(usable) != want {
					t.Fatalf("report %d has devices %+v, want %s", i, usable, devices)
				}
				if want == 0 {
					checkPool(t, r, hwprobe.HostPool, strings.Fields(total)[0], strings.Fields(free)[0])
					continue
				}
				checkPool(t, r, usable[0].Pool, total, free)
				if answer := strings.Split(unified, ",")[0]; usable[0].Integrated != hwprobe.Known(answer == "yes") {
					t.Errorf("integrated %v, want %s", usable[0].Integrated, answer)
				}
			}
		})
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
	index := readFixture(t, "index.tsv")
	for _, e := range entries {
		if e.Name() != "index.tsv" && !strings.Contains(index, "\n"+e.Name()+"\t") {
			t.Errorf("%s has no row in index.tsv, so nothing tests it", e.Name())
		}
	}
}
