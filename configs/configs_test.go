package configs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func load(t *testing.T, file string, env map[string]string) (Config, Origins, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "loopkeeper.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(Sources{File: path, Hostname: "attic", DataDir: t.TempDir(), Env: func(k string) (string, bool) {
		v, ok := env[k]
		return v, ok
	}, Flags: func(c *Config) map[string]string {
		if env["--slots"] == "" {
			return nil
		}
		c.Worker.Slots = 7
		return map[string]string{"worker.slots": "slots"}
	}})
}

func TestOrderAndOrigins(t *testing.T) {
	file := "fleet: lab\nworker:\n  slots: 2\n  heartbeat: 1s\n"
	c, from, err := load(t, file, map[string]string{"OLLAMA_NUM_PARALLEL": "4", "LOOPKEEPER_FLEET": ""})
	if err != nil {
		t.Fatal(err)
	}
	if c.Fleet != "lab" || c.Worker.Slots != 4 || c.Worker.Heartbeat != time.Second || c.Models.DefaultContext != 8192 {
		t.Fatalf("got %+v", c)
	}
	if !strings.HasSuffix(from["fleet"], "loopkeeper.yaml:1") || !strings.HasSuffix(from["worker.heartbeat"], ":4") ||
		from["worker.slots"] != "env OLLAMA_NUM_PARALLEL" || from["models.default_context"] != "default" {
		t.Fatalf("origins %v", from)
	}
	c, from, err = load(t, file, map[string]string{"OLLAMA_NUM_PARALLEL": "4", "--slots": "7"})
	if err != nil || c.Worker.Slots != 7 || from["worker.slots"] != "flag --slots" {
		t.Fatalf("flag lost: %v %v %v", c.Worker.Slots, from["worker.slots"], err)
	}
}

func TestFaultsNameTheirPlace(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"unknown key":         {"fleet: home\nworker:\n  slot: 2\n", `loopkeeper.yaml:3:3: unknown field "slot"`},
		"unknown section":     {"wroker:\n  slots: 2\n", `loopkeeper.yaml:1:1: unknown field "wroker"`},
		"mistyped value":      {"worker:\n  slots: many\n", `loopkeeper.yaml:2:10: worker.slots: want a whole number, got "many"`},
		"not YAML":            {"fleet: [a\n", "loopkeeper.yaml:1:"},
		"value out of range":  {"fleet: home\nworker:\n  slots: 0\n", "loopkeeper.yaml:3): want at least 1, got 0"},
		"bad fleet":           {"fleet: My Home\n", `loopkeeper.yaml:1): want 1 to 63 of a-z`},
		"bad element":         {"coordinator:\n  workers: [den]\n", `coordinator.workers[0] (file `},
		"duration without":    {"worker:\n  heartbeat: 3\n", `loopkeeper.yaml:2:14: worker.heartbeat: want a duration such as 15s, got "3"`},
		"no duration":         {"fleet: home\ncoordinator:\n  lost_after: soon\n", `loopkeeper.yaml:3:15: coordinator.lost_after: want a duration such as 15s, got "soon"`},
		"twice the same key":  {"fleet: a\nfleet: b\n", "loopkeeper.yaml:2:1: "},
		"list for a scalar":   {"fleet: [a, b]\n", `loopkeeper.yaml:1:8: fleet: want a text, got "["`},
		"no size":             {"worker:\n  hardware:\n    memory: lots\n", `loopkeeper.yaml:3:13: worker.hardware.memory: want a size such as 24 GiB or 512 MiB, or bytes, got "lots"`},
		"ambiguous unit":      {"worker:\n  hardware:\n    pools:\n      - id: host\n        reserve: 8 GB\n", `loopkeeper.yaml:5:18: worker.hardware.pools: want a size such as 24 GiB or 512 MiB, or bytes, got "8 GB"`},
		"negative size":       {"worker:\n  hardware:\n    pools: [{id: host, total: -1}]\n", `loopkeeper.yaml:3:31: worker.hardware.pools: want a size`},
		"unknown pool key":    {"worker:\n  hardware:\n    pools: [{id: host, totl: 1}]\n", `loopkeeper.yaml:3:24: unknown field "totl"`},
		"not yes or no":       {"worker:\n  hardware:\n    devices: [{id: a, hide: often}]\n", `loopkeeper.yaml:3:29: worker.hardware.devices: want true or false, got "often"`},
		"says nothing":        {"worker:\n  hardware:\n    pools: [{id: host}]\n", `worker.hardware.pools[0] (file `},
		"reserves everything": {"worker:\n  hardware:\n    pools: [{id: host, total: 8 GiB, reserve: 8 GiB}]\n", `loopkeeper.yaml:3:14): pool host: a reserve of 8 GiB leaves nothing of 8 GiB`},
		"pool without id":     {"worker:\n  hardware:\n    pools: [{total: 8 GiB}]\n", `want an id: loopkeeper probe`},
		"hide and force":      {"worker:\n  hardware:\n    devices: [{id: a, hide: true, force: true}]\n", `device a: want hide: true or force: true`},
		"device twice":        {"worker:\n  hardware:\n    devices: [{id: a, hide: true}, {id: a, force: true}]\n", `worker.hardware.devices[1]`},
		"unreachable address": {"coordinator:\n  listen: nowhere\n", `want host:port, got "nowhere"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, tc.file, nil)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v\nwant it to say %q", err, tc.want)
			}
			if e := apierr.As(err); e.Code != apierr.InvalidArgument || len(e.Next) == 0 && !strings.Contains(err.Error(), "env") {
				t.Fatalf("code %s, next %v", e.Code, e.Next)
			}
		})
	}
}

func TestHardwareIsReadAsPeopleWriteIt(t *testing.T) {
	file := "worker:\n  hardware:\n    memory: 10GiB\n    pools:\n      - {id: host, reserve: 1.5 GiB}\n" +
		"      - id: \"gpu:0000:0c:00.0\"\n        total: 25769803776\n        reserve: \"512 mib\"\n    devices:\n      - {id: GPU-1, hide: true}\n"
	c, from, err := load(t, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Hardware{Memory: 10 << 30, Pools: Pools{{ID: "host", Reserve: 3 << 29}, {ID: "gpu:0000:0c:00.0", Total: 24 << 30, Reserve: 512 << 20}},
		Devices: Devices{{ID: "GPU-1", Hide: true}}}
	if diff := cmp.Diff(want, c.Worker.Hardware); diff != "" {
		t.Error(diff)
	}
	if !strings.HasSuffix(from["worker.hardware.memory"], ":3") || !strings.HasSuffix(from["worker.hardware.pools"], ":4") || !strings.HasSuffix(from["worker.hardware.devices"], ":9") {
		t.Errorf("origins %v", from)
	}
	if got, want := sprint(c.Worker.Hardware.Pools), "host: reserve 1536 MiB; gpu:0000:0c:00.0: total 24 GiB, reserve 512 MiB"; got != want {
		t.Errorf("shown as %q, want %q", got, want)
	}
}

func TestBadEnvironmentNamesTheVariable(t *testing.T) {
	_, _, err := load(t, "", map[string]string{"LOOPKEEPER_SLOTS": "two"})
	if err == nil || !strings.Contains(err.Error(), "LOOPKEEPER_SLOTS") {
		t.Fatalf("got %v", err)
	}
}

func TestNamedFileMustExist(t *testing.T) {
	if _, _, err := Load(Sources{File: filepath.Join(t.TempDir(), "no.yaml"), Hostname: "h", DataDir: "d"}); apierr.CodeOf(err) != apierr.NotFound {
		t.Fatalf("got %v", err)
	}
	if _, _, err := Load(Sources{Fallback: filepath.Join(t.TempDir(), "no.yaml"), Hostname: "h", DataDir: "d"}); err != nil {
		t.Fatalf("a missing default file is no error, got %v", err)
	}
}

// The forms are those that Ollama's own client accepts in OLLAMA_HOST.
func TestOllamaHostForms(t *testing.T) {
	for in, want := range map[string]string{
		"": "http://127.0.0.1:11434", "0.0.0.0": "http://127.0.0.1:11434", ":1234": "http://127.0.0.1:1234",
		"den:8080": "http://den:8080", "https://den": "https://den:443", "http://den:1/": "http://den:1", "[::1]:99": "http://[::1]:99",
	} {
		if got := ollamaURL(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// The example must say the truth: read as a file, it changes nothing, and it names every key.
func TestExampleIsTheDefaults(t *testing.T) {
	got, _, err := load(t, Example, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := load(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range Show(got, Origins{}) {
		w := Show(want, Origins{})[i]
		if row.Key == "data_dir" {
			continue
		}
		g, x := strings.Trim(strings.ReplaceAll(sprint(row.Value), "<nil>", ""), "[]map"), strings.Trim(sprint(w.Value), "[]map")
		if g != x {
			t.Errorf("%s: example says %v, default is %v", row.Key, row.Value, w.Value)
		}
		parts := strings.Split(row.Key, ".")
		if !strings.Contains(Example, parts[len(parts)-1]+":") {
			t.Errorf("the example does not name %s", row.Key)
		}
	}
}

// Installing the example must not switch off what the environment and other settings decide.
func TestExampleLeavesTheEnvironmentAlone(t *testing.T) {
	env := map[string]string{"LOOPKEEPER_INSECURE_LAN": "true", "OLLAMA_HOST": "den:8080", "OLLAMA_NUM_PARALLEL": "4", "LOOPKEEPER_NAME": "shed"}
	got, _, err := load(t, Example, env)
	if err != nil {
		t.Fatal(err)
	}
	want, _, err := load(t, "", env)
	if err != nil {
		t.Fatal(err)
	}
	if got.Worker.Listen != "0.0.0.0:7701" || got.Worker.Ollama != "http://den:8080" || got.Worker.Slots != 4 {
		t.Fatalf("the example decides over the environment: %+v", got.Worker)
	}
	want.DataDir = got.DataDir // each load has a folder of its own
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("with the example installed (-without +with):\n%s", diff)
	}
}

func sprint(v any) string { return fmt.Sprint(v) }
