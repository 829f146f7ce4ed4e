package probe

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

func TestControlGroupLimits(t *testing.T) {
	const total, available = 64 << 30, 48 << 30
	for _, c := range []struct {
		name        string
		files       map[string]string
		total, free hwprobe.Bytes
		source      hwprobe.Source
	}{
		{"none", nil, hwprobe.Known[uint64](total), hwprobe.Known[uint64](available), hwprobe.SourceOS},
		{"max is no limit", map[string]string{"memory.max": "max\n", "memory.current": "1024\n"},
			hwprobe.Known[uint64](total), hwprobe.Known[uint64](available), hwprobe.SourceOS},
		{"larger than the machine", map[string]string{"memory.max": "99999999999999\n"},
			hwprobe.Known[uint64](total), hwprobe.Known[uint64](available), hwprobe.SourceOS},
		// Page cache that the kernel can drop is free: counting it as used refuses models that fit (ollama#15474).
		{"limit", map[string]string{"memory.max": "8589934592\n", "memory.current": "6442450944\n",
			"memory.stat": "anon 1073741824\ninactive_file 5368709120\n"}, hwprobe.Known[uint64](8 << 30), hwprobe.Known[uint64](7 << 30), hwprobe.SourceCgroup},
		{"a parent's tighter limit", map[string]string{"app/worker/memory.max": "8589934592\n", "app/worker/memory.current": "0\n",
			"app/memory.max": "4294967296\n", "app/memory.current": "1073741824\n"}, hwprobe.Known[uint64](4 << 30), hwprobe.Known[uint64](3 << 30), hwprobe.SourceCgroup},
		{"a parent's fuller limit", map[string]string{"app/worker/memory.max": "4294967296\n", "app/worker/memory.current": "0\n",
			"app/memory.max": "8589934592\n", "app/memory.current": "7516192768\n"}, hwprobe.Known[uint64](4 << 30), hwprobe.Known[uint64](1 << 30), hwprobe.SourceCgroup},
		{"use unknown", map[string]string{"memory.max": "8589934592\n"}, hwprobe.Known[uint64](8 << 30), hwprobe.Bytes{}, hwprobe.SourceCgroup},
	} {
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte("12:cpu:/x\n0::/app/worker\n")}}
		for name, text := range c.files {
			root["sys/fs/cgroup/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
		host := fixedHost{TotalBytes: hwprobe.Known[uint64](total), AvailableBytes: hwprobe.Known[uint64](available)}
		r := Probe(t.Context(), machine(root, absent{}, host))
		checkConsistent(t, r)
		p := r.Pools[0]
		if p.TotalBytes != c.total || p.FreeBytes != c.free || p.TotalSource != c.source {
			t.Errorf("%s: pool %+v, want total %v, free %v from %s", c.name, p, c.total, c.free, c.source)
		}
		if limited := len(r.Warnings) == 1 && r.Warnings[0].Code == hwprobe.WarnMemoryLimited; limited != (c.source == hwprobe.SourceCgroup) {
			t.Errorf("%s: warnings %+v", c.name, r.Warnings)
		}
		if r.Host.TotalBytes != hwprobe.Known[uint64](total) {
			t.Errorf("%s: the machine itself has %v", c.name, r.Host.TotalBytes)
		}
	}
}

func TestSystemHostWithoutMeminfoIsUnknown(t *testing.T) {
	r := Probe(meminfo(t, "nothing a kernel writes"), realHost(fstest.MapFS{}, absent{}))
	checkConsistent(t, r)
	checkPool(t, r, hwprobe.HostPool, "?", "?")
	if len(r.Warnings) != 1 || r.Warnings[0].Code != hwprobe.WarnHostUnreadable {
		t.Errorf("warnings %+v", r.Warnings)
	}
}

type brokenHost struct{}

func (brokenHost) Call(context.Context, string, ...string) ([]byte, error) {
	return nil, errors.New("no /proc")
}

func TestHostThatCannotBeReadIsAWarning(t *testing.T) {
	r := Probe(t.Context(), source.Machine{Files: fstest.MapFS{}, Commands: absent{}, Calls: brokenHost{}})
	checkConsistent(t, r)
	if len(r.Warnings) != 1 || r.Warnings[0].Code != hwprobe.WarnHostUnreadable || len(r.Pools) != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestThisMachine(t *testing.T) {
	r := Probe(t.Context(), ThisMachine())
	checkConsistent(t, r)
	if r.Host.TotalBytes.Or(0) == 0 || r.Host.AvailableBytes.Or(0) == 0 || r.Host.Cores == 0 || r.Host.Hostname == "" {
		t.Errorf("host %+v", r.Host)
	}
}

func TestUnknownIsNotZero(t *testing.T) {
	type numbers struct{ A, B, C hwprobe.Bytes }
	text, err := json.Marshal(numbers{A: hwprobe.Known[uint64](0), B: hwprobe.Known[uint64](18446744073709551615)})
	if want := `{"A":0,"B":18446744073709551615,"C":null}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
	back := numbers{C: hwprobe.Known[uint64](7)} // an old value must not show through a null
	if err := json.Unmarshal(text, &back); err != nil || back.A != hwprobe.Known[uint64](0) || back.C != (hwprobe.Bytes{}) {
		t.Errorf("got %+v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"A":-1}`), &back); err == nil {
		t.Error("a negative size was taken")
	}
}
