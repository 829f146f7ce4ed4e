package hwprobe

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/fstest"
)

func TestControlGroupLimits(t *testing.T) {
	const total, available = 64 << 30, 48 << 30
	for _, c := range []struct {
		name        string
		files       map[string]string
		total, free Bytes
		source      Source
	}{
		{"none", nil, Known[uint64](total), Known[uint64](available), SourceOS},
		{"max is no limit", map[string]string{"memory.max": "max\n", "memory.current": "1024\n"},
			Known[uint64](total), Known[uint64](available), SourceOS},
		{"larger than the machine", map[string]string{"memory.max": "99999999999999\n"},
			Known[uint64](total), Known[uint64](available), SourceOS},
		// Page cache that the kernel can drop is free: counting it as used refuses models that fit (ollama#15474).
		{"limit", map[string]string{"memory.max": "8589934592\n", "memory.current": "6442450944\n",
			"memory.stat": "anon 1073741824\ninactive_file 5368709120\n"}, Known[uint64](8 << 30), Known[uint64](7 << 30), SourceCgroup},
		{"a parent's tighter limit", map[string]string{"app/worker/memory.max": "8589934592\n", "app/worker/memory.current": "0\n",
			"app/memory.max": "4294967296\n", "app/memory.current": "1073741824\n"}, Known[uint64](4 << 30), Known[uint64](3 << 30), SourceCgroup},
		{"a parent's fuller limit", map[string]string{"app/worker/memory.max": "4294967296\n", "app/worker/memory.current": "0\n",
			"app/memory.max": "8589934592\n", "app/memory.current": "7516192768\n"}, Known[uint64](4 << 30), Known[uint64](1 << 30), SourceCgroup},
		{"use unknown", map[string]string{"memory.max": "8589934592\n"}, Known[uint64](8 << 30), Bytes{}, SourceCgroup},
	} {
		root := fstest.MapFS{"proc/self/cgroup": {Data: []byte("12:cpu:/x\n0::/app/worker\n")}}
		for name, text := range c.files {
			root["sys/fs/cgroup/"+name] = &fstest.MapFile{Data: []byte(text)}
		}
		host := fixedHost{TotalBytes: Known[uint64](total), AvailableBytes: Known[uint64](available)}
		r := Probe(t.Context(), Options{Root: root, Runner: absent{}, Host: host})
		checkConsistent(t, r)
		p := r.Pools[0]
		if p.TotalBytes != c.total || p.FreeBytes != c.free || p.TotalSource != c.source {
			t.Errorf("%s: pool %+v, want total %v, free %v from %s", c.name, p, c.total, c.free, c.source)
		}
		if limited := len(r.Warnings) == 1 && r.Warnings[0].Code == WarnMemoryLimited; limited != (c.source == SourceCgroup) {
			t.Errorf("%s: warnings %+v", c.name, r.Warnings)
		}
		if r.Host.TotalBytes != Known[uint64](total) {
			t.Errorf("%s: the machine itself has %v", c.name, r.Host.TotalBytes)
		}
	}
}

func TestSystemHostWithoutMeminfoIsUnknown(t *testing.T) {
	r := Probe(meminfo(t, "nothing a kernel writes"), Options{Root: fstest.MapFS{}, Runner: absent{}})
	checkConsistent(t, r)
	checkPool(t, r, HostPool, "?", "?")
	if len(r.Warnings) != 1 || r.Warnings[0].Code != WarnHostUnreadable {
		t.Errorf("warnings %+v", r.Warnings)
	}
}

type brokenHost struct{}

func (brokenHost) ReadHost(context.Context) (Host, error) {
	return Host{Cores: 4}, errors.New("no /proc")
}

func TestHostThatCannotBeReadIsAWarning(t *testing.T) {
	r := Probe(t.Context(), Options{Root: fstest.MapFS{}, Runner: absent{}, Host: brokenHost{}})
	checkConsistent(t, r)
	if len(r.Warnings) != 1 || r.Warnings[0].Code != WarnHostUnreadable || r.Host.Cores != 4 || len(r.Pools) != 1 {
		t.Errorf("got %+v", r)
	}
}

func TestThisMachine(t *testing.T) {
	r := Probe(t.Context(), NewOptions())
	checkConsistent(t, r)
	if r.Host.TotalBytes.Or(0) == 0 || r.Host.AvailableBytes.Or(0) == 0 || r.Host.Cores == 0 || r.Host.Hostname == "" {
		t.Errorf("host %+v", r.Host)
	}
}

func TestUnknownIsNotZero(t *testing.T) {
	type numbers struct{ A, B, C Bytes }
	text, err := json.Marshal(numbers{A: Known[uint64](0), B: Known[uint64](18446744073709551615)})
	if want := `{"A":0,"B":18446744073709551615,"C":null}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
	back := numbers{C: Known[uint64](7)} // an old value must not show through a null
	if err := json.Unmarshal(text, &back); err != nil || back.A != Known[uint64](0) || back.C != (Bytes{}) {
		t.Errorf("got %+v, %v", back, err)
	}
	if err := json.Unmarshal([]byte(`{"A":-1}`), &back); err == nil {
		t.Error("a negative size was taken")
	}
}
