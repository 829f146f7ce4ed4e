package probe

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// machinesOf returns the machines that a fixture is probed as, whatever way it becomes one.
func machinesOf(t *testing.T, file string) []source.Machine {
	t.Helper()
	k := slices.IndexFunc(recordings, func(r recording) bool { ok, _ := path.Match(r.pattern, file); return ok })
	if _, none := noInput[file]; none || k < 0 {
		return nil
	}
	var mu sync.Mutex
	var machines []source.Machine
	real := vendors
	defer func() { vendors = real }()
	vendors = append(slices.Clone(real), vendor{"the test", func(_ context.Context, m source.Machine, _ hwprobe.Host) hwprobe.Findings {
		mu.Lock()
		defer mu.Unlock()
		machines = append(machines, m)
		return hwprobe.Findings{}
	}})
	recordings[k].probe(t, file)
	return machines
}

const (
	plantedUUID = "4f1c2b3a-1122-3344-5566-77889900aabb"
	plantedTool = "/home/gwendolyn/train.py"
	plantedHost = "waldo-den"
)

// plant puts secrets where the fixtures had them: they were taken out before they were handed out.
var plant = strings.NewReplacer("00000000-0000-0000-0000-000000000000", plantedUUID, ">redacted<", ">"+plantedTool+"<", ": redacted", ": "+plantedTool,
	"0123456789abcdef", "9e8d7c6b5a493827")

var planted = []string{plantedUUID, "gwendolyn", plantedHost, "9e8d7c6b5a493827"}

type planter struct{ m source.Machine }

func (p planter) machine() source.Machine {
	return source.Machine{OS: p.m.OS, Arch: p.m.Arch, Files: plantedFS{p.m.Files}, Commands: p, Calls: p}
}

func (p planter) Run(ctx context.Context, name string, args ...string) (source.Output, error) {
	out, err := p.m.Commands.Run(ctx, name, args...)
	out.Stdout, out.Stderr = []byte(plant.Replace(string(out.Stdout))), []byte(plant.Replace(string(out.Stderr)))
	return out, err
}

func (p planter) Call(ctx context.Context, name string, args ...string) ([]byte, error) {
	raw, err := p.m.Calls.Call(ctx, name, args...)
	var h map[string]any
	if err == nil && json.Unmarshal(raw, &h) == nil && h["hostname"] != nil {
		h["hostname"] = plantedHost
		return json.Marshal(h)
	}
	return []byte(plant.Replace(string(raw))), err
}

type plantedFS struct{ fs.FS }

func (p plantedFS) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(p.FS, name)
	return []byte(plant.Replace(string(text))), err
}

// Every recorded machine, recorded again by the probe itself, gives the same report, and the recording no secret.
func TestReplayOfARecordingGivesTheSameReport(t *testing.T) {
	for file := range readIndex(t) {
		t.Run(file, func(t *testing.T) {
			machines := machinesOf(t, file)
			if _, none := noInput[file]; !none && len(machines) == 0 {
				t.Error("it became no machine")
			}
			for _, m := range machines {
				dir := filepath.Join(t.TempDir(), "raw")
				recorder, err := source.Record(planter{m}.machine(), dir)
				if err != nil {
					t.Fatal(err)
				}
				live := Probe(t.Context(), recorder.Machine())
				if err := recorder.Close(); err != nil {
					t.Fatal(err)
				}
				replayed, err := source.Open(dir)
				if err != nil {
					t.Fatal(err)
				}
				want, got := recorder.Mask(asJSON(t, live)), asJSON(t, Probe(t.Context(), replayed))
				if got != want {
					t.Errorf("got\n%s\nwant\n%s", got, want)
				}
				checkMasked(t, dir)
			}
		})
	}
}

func asJSON(t *testing.T, r hwprobe.Report) string {
	t.Helper()
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func checkMasked(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(at string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(at)
		for _, secret := range planted {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s tells %s", at, secret)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
