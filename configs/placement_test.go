package configs

import (
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

const placed = `models:
  pins: {"qwen3:8b": [attic, den]}
  contexts: {"hf.co/unsloth/q3:Q4": 16384}
  idle_unload: 0s
  pull: auto
nodes:
  den:
    hours: ["Mon-Fri 18:00-08:00", "Sat,Sun"]
    zone: Europe/Berlin
    reserve: 2 GiB
    max_calls: 1
    kv_type: q8_0
    gpu_overhead: 1 GiB
resources:
  http:example.org: {cap: 2, rate: 0.5, burst: 5}
`

func TestPlacementSettings(t *testing.T) {
	c, from, err := load(t, placed, nil)
	if err != nil {
		t.Fatal(err)
	}
	den := c.Nodes["den"]
	if c.Models.Pins.String() != "qwen3:8b: attic, den" || c.Models.IdleUnload != 0 || c.Models.Pull != PullAuto || den.Reserve != 2<<30 ||
		den.MaxCalls != 1 || den.KVType != "q8_0" || den.GPUOverhead != 1<<30 || c.Resources["http:example.org"] != (Resource{2, 0.5, 5}) {
		t.Errorf("read %+v, %+v, %+v", c.Models, c.Nodes, c.Resources)
	}
	for key, want := range map[string]string{"models.pins": "yaml:2", "models.pins.qwen3:8b[1]": "yaml:2:30", "nodes.den.hours[1]": "yaml:8:36", "nodes": "yaml:6"} {
		if !strings.HasSuffix(from[key], want) {
			t.Errorf("%s is said to come from %s, want %s", key, from[key], want)
		}
	}
	for key, want := range map[string]string{"nodes": "den: Mon-Fri 18:00-08:00 + Sat,Sun Europe/Berlin, reserve 2 GiB, max_calls 1, kv_type q8_0, gpu_overhead 1 GiB", "resources": "http:example.org: cap 2, rate 0.5, burst 5"} {
		if got := settingOf(key).get(&c); got.(interface{ String() string }).String() != want {
			t.Errorf("%s is shown as %s", key, got)
		}
	}
	if z, err := den.Location(); err != nil || z.String() != "Europe/Berlin" {
		t.Error(z, err)
	}
}

func TestFaultsOfPlacementNameTheirPlace(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"a day that is none":       {"nodes:\n  den:\n    hours: [\"Mon-Fri 18:00-08:00\", \"Mun 1:00-2:00\"]\n", `nodes.den.hours[1] (file loopkeeper.yaml:3:36): no days of the week are "Mun"`},
		"hours in words":           {"nodes: {den: {hours: [at night]}}", `nodes.den.hours[0] (file loopkeeper.yaml:1:23): no days of the week are "at"`},
		"a zone that is none":      {"nodes:\n  den:\n    hours: [\"1:00-2:00\"]\n    zone: Berlin\n", `nodes.den.zone (file loopkeeper.yaml:4:11): want a time zone such as Europe/Berlin, got "Berlin"`},
		"a zone for nothing":       {"nodes: {den: {zone: Europe/Berlin}}", `nodes.den.zone (file loopkeeper.yaml:1:21): is the time zone of hours`},
		"a reserve in GB":          {"nodes:\n  den:\n    reserve: 2GB\n", `loopkeeper.yaml:3:14: nodes: want a size such as 24 GiB or 512 MiB, or bytes, got "2GB"`},
		"calls in words":           {"nodes:\n  den:\n    max_calls: one\n", `loopkeeper.yaml:3:16: nodes: want a whole number, got "one"`},
		"fewer than no calls":      {"nodes:\n  den:\n    max_calls: -1\n", `nodes.den.max_calls (file loopkeeper.yaml:3:16): want at least 0, got -1`},
		"a cache of no type":       {"nodes:\n  den:\n    kv_type: q8\n", `nodes.den.kv_type (file loopkeeper.yaml:3:14): want f16, q8_0, q4_0, as OLLAMA_KV_CACHE_TYPE there, got "q8"`},
		"an overhead in words":     {"nodes:\n  den:\n    gpu_overhead: some\n", `loopkeeper.yaml:3:19: nodes: want a size such as 24 GiB`},
		"an unknown key of a node": {"nodes:\n  den:\n    hour: [x]\n", `loopkeeper.yaml:3:5: unknown field "hour"`},
		"a pin without a list":     {"models:\n  pins: {m: den}\n", `loopkeeper.yaml:2:13: models.pins: want a list, got "den"`},
		"a pin to nowhere":         {"models:\n  pins:\n    m: []\n", `models.pins.m (file loopkeeper.yaml:3:5): want the names of the machines that keep m loaded`},
		"a pin to no name":         {"models:\n  pins: {m: [den, '']}\n", `models.pins.m[1] (file loopkeeper.yaml:2:19): want the name of a machine`},
		"no tokens":                {"models:\n  contexts: {a: 1, b: 0}\n", `models.contexts.b (file loopkeeper.yaml:2:23): want at least 1 token, got 0`},
		"too short to be meant":    {"models:\n  idle_unload: 5ms\n", `models.idle_unload (file loopkeeper.yaml:2): want at least 1s, or 0 for never, got 5ms`},
		"minutes without a unit":   {"models:\n  idle_unload: 5\n", `loopkeeper.yaml:2:16: models.idle_unload: want a duration such as 15s, got "5"`},
		"a policy that is none":    {"models:\n  pull: always\n", `models.pull (file loopkeeper.yaml:2): want ask, auto or never, got "always"`},
		"a limit of nothing":       {"resources:\n  db: {burst: 3}\n", `resources.db (file loopkeeper.yaml:2:3): want a cap or a rate`},
		"a burst without a rate":   {"resources:\n  db: {cap: 1, burst: 3}\n", `resources.db.burst (file loopkeeper.yaml:2:23): belongs to a rate`},
		"a node without keys":      {"nodes:\n  den: 2 GiB\n", `loopkeeper.yaml:2:8: nodes: want keys and values, got "2 GiB"`},
		"a rate in words":          {"resources:\n  db: {rate: fast}\n", `loopkeeper.yaml:2:14: resources: want a number, got "fast"`},
		"a rate that is no number": {"resources:\n  db: {rate: .nan}\n", `resources.db.rate (file loopkeeper.yaml:2:14): want calls a second`},
		"a negative cap":           {"resources:\n  db: {cap: -1}\n", `resources.db.cap (file loopkeeper.yaml:2:13): want at least 0, got -1`},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := load(t, c.file, nil)
			if err == nil || apierr.CodeOf(err) != apierr.InvalidArgument || len(apierr.As(err).Next) == 0 {
				t.Fatalf("got %v", err)
			}
			got := err.Error()
			if i, j := strings.Index(got, "/"), strings.Index(got, "loopkeeper.yaml"); i >= 0 && i < j {
				got = got[:i] + got[j:] // the folder of the test
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestWindows(t *testing.T) {
	const hour = time.Hour
	all, workdays := [7]bool{true, true, true, true, true, true, true}, [7]bool{1: true, 2: true, 3: true, 4: true, 5: true}
	for text, want := range map[string]Window{
		"Mon-Fri 18:00-08:00":      {workdays, 18 * hour, 8 * hour},
		"monday-FRIDAY 18:00-8:00": {workdays, 18 * hour, 8 * hour},
		"Sat,Sun":                  {[7]bool{0: true, 6: true}, 0, 24 * hour},
		"22:30-06:00":              {all, 22*hour + 30*time.Minute, 6 * hour},
		"Fri-Mon,Wed 00:00-24:00":  {[7]bool{0: true, 1: true, 3: true, 5: true, 6: true}, 0, 24 * hour},
		"  Tue   00:00-00:01 ":     {[7]bool{2: true}, 0, time.Minute},
		"Mon-Sun":                  {all, 0, 24 * hour},
		"Tue-Tue 12:00-24:00":      {[7]bool{2: true}, 12 * hour, 24 * hour},
	} {
		if got, err := ParseWindow(text); err != nil || got != want {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "Mon-", "-Fri", "Mon,,Tue", "Mo 1:00-2:00", "Mon 1:00", "Mon 1:00-25:00", "Mon 24:00-2:00", "Mon 8:00-8:00", "Mon 8-10", "Mon 8:00-10:00 UTC",
		"Mon 8:60-10:00", "Mon 08:00–10:00", "8:00-10:00 Mon", "00:00-00:00"} {
		if w, err := ParseWindow(text); err == nil {
			t.Errorf("%q is read as %+v", text, w)
		}
	}
}
