package intel

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/fixture"
)

func FuzzXeReply(f *testing.F) {
	f.Add(xeReply(region{0, 64 << 30, 5 << 30}, region{1, 12884901888, 32079872}))
	f.Add(xeReply(region{1, math.MaxUint64, math.MaxUint64}, region{1, 2, 0}))
	f.Fuzz(func(t *testing.T, reply []byte) {
		list, err := decodeXe(reply)
		if err != nil && list != nil || len(list)*xeRegion > len(reply) {
			t.Errorf("%+v, %v of %d bytes", list, err, len(reply))
		}
		checkSum(t, sumXe(list))
	})
}

func FuzzI915Reply(f *testing.F) {
	f.Add(i915Reply(region{0, 64 << 30, 60 << 30}, region{1, 16225243136, 10125414400}))
	f.Add(i915Reply(region{1, math.MaxUint64, math.MaxUint64}, region{1, 2, 0}))
	f.Fuzz(func(t *testing.T, reply []byte) {
		list, err := decodeI915(reply)
		if err != nil && list != nil || len(list)*i915Region > len(reply) {
			t.Errorf("%+v, %v of %d bytes", list, err, len(reply))
		}
		checkSum(t, sumI915(list))
	})
}

// checkSum holds what is true of every card, whatever its driver says.
func checkSum(t *testing.T, s regions) {
	t.Helper()
	total, knowsTotal := s.total.Value()
	free, knowsFree := s.free.Value()
	if knowsTotal && total == 0 || knowsFree && (!knowsTotal || free > total) || !s.ownMemory && (knowsTotal || knowsFree) {
		t.Errorf("%+v", s)
	}
}

func FuzzVRAMManager(f *testing.F) {
	f.Add(fixture.Text(f, "intel-xe-vram_mm-a750.txt"))
	f.Add("size: 7\nusage: 8\n")
	f.Fuzz(func(t *testing.T, text string) {
		m := parseVRAMManager(text)
		total, knowsTotal := m.total.Value()
		free, knowsFree := m.free.Value()
		if knowsTotal && !strings.Contains(text, fmt.Sprint(total)) || m.total == hwprobe.Known[uint64](0) || knowsFree && (!knowsTotal || free > total) {
			t.Errorf("%+v", m)
		}
	})
}
