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
