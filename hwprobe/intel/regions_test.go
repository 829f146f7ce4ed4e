package intel

import (
	"math"
	"reflect"
	"testing"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

func TestRepliesAreDecodedAsTheHeadersLayThemOut(t *testing.T) {
	xe, err := decodeXe(xeReply(region{0, 64 << 30, 5 << 30}, region{1, 12884901888, 32079872}))
	if want := []XeRegion{{0, 0, 64 << 30, 5 << 30}, {1, 1, 12884901888, 32079872}}; err != nil || !reflect.DeepEqual(xe, want) {
		t.Errorf("xe %+v, %v; want %+v", xe, err, want)
	}
	i915, err := decodeI915(i915Reply(region{0, 64 << 30, 60 << 30}, region{1, 6408896512, 6000000000}))
	if want := []I915Region{{0, 0, 64 << 30, 60 << 30}, {1, 1, 6408896512, 6000000000}}; err != nil || !reflect.DeepEqual(i915, want) {
		t.Errorf("i915 %+v, %v; want %+v", i915, err, want)
	}
}

func TestReplyThatIsShorterThanItSaysIsNoReply(t *testing.T) {
	xe, i915 := xeReply(region{1, 1, 1}, region{1, 2, 2}), i915Reply(region{1, 1, 1}, region{1, 2, 2})
	for _, cut := range []int{1, 88, 89, len(xe) - 7} {
		if list, err := decodeXe(xe[:len(xe)-cut]); err == nil || list != nil {
			t.Errorf("xe without %d bytes: %+v", cut, list)
		}
		if list, err := decodeI915(i915[:len(i915)-cut]); err == nil || list != nil {
			t.Errorf("i915 without %d bytes: %+v", cut, list)
		}
	}
	xe[3] = 0xff // 4278190082 regions
	if list, err := decodeXe(xe); err == nil || list != nil {
		t.Errorf("xe of too many regions: %+v", list)
	}
}

// The kernel says "nothing is used" or "all is unallocated" to a process without rights, which is no idle card
// (level-zero#133: 16225243136 free where 10125414400 were).
func TestFreeThatEqualsTotalIsUnknown(t *testing.T) {
	known, unknown := hwprobe.Known[uint64], hwprobe.Bytes{}
	for _, c := range []struct {
		name        string
		got         regions
		total, free hwprobe.Bytes
	}{
		{"xe without rights", sumXe([]XeRegion{{Class: 0, TotalSize: 64 << 30, Used: 5}, {Class: 1, TotalSize: 12884901888}}), known(12884901888), unknown},
		{"xe with rights", sumXe([]XeRegion{{Class: 1, TotalSize: 8522825728, Used: 32079872}}), known(8522825728), known(8490745856)},
		{"xe that uses more than there is", sumXe([]XeRegion{{Class: 1, TotalSize: 100, Used: 101}}), known(100), known(0)},
		{"i915 without rights", sumI915([]I915Region{{Class: 1, ProbedSize: 16225243136, UnallocatedSize: 16225243136}}), known(16225243136), unknown},
		{"i915 with rights", sumI915([]I915Region{{Class: 1, ProbedSize: 16225243136, UnallocatedSize: 10125414400}}), known(16225243136), known(10125414400)},
		{"i915 full", sumI915([]I915Region{{Class: 1, ProbedSize: 16225243136}}), known(16225243136), known(0)},
		{"i915 that does not know its size", sumI915([]I915Region{{Class: 1, ProbedSize: math.MaxUint64, UnallocatedSize: math.MaxUint64}}), unknown, unknown},
		{"i915 that does not know what is left", sumI915([]I915Region{{Class: 1, ProbedSize: 100, UnallocatedSize: math.MaxUint64}}), known(100), unknown},
		{"two tiles", sumXe([]XeRegion{{Class: 1, TotalSize: 64 << 30, Used: 1 << 30}, {Class: 1, Instance: 1, TotalSize: 64 << 30, Used: 2 << 30}}), known(128 << 30), known(125 << 30)},
		{"two tiles, one of unknown use", sumXe([]XeRegion{{Class: 1, TotalSize: 64 << 30, Used: 1 << 30}, {Class: 1, Instance: 1, TotalSize: 64 << 30}}), known(128 << 30), unknown},
		{"two tiles, one of unknown size", sumXe([]XeRegion{{Class: 1, Used: 1}, {Class: 1, Instance: 1, TotalSize: 64 << 30, Used: 1}}), unknown, unknown},
	} {
		if want := (regions{known: true, ownMemory: true, total: c.total, free: c.free}); c.got != want {
			t.Errorf("%s: %+v, want %+v", c.name, c.got, want)
		}
	}
	if got := sumXe([]XeRegion{{Class: 0, TotalSize: 64 << 30}}); got != (regions{known: true}) {
		t.Errorf("a processor's graphics: %+v", got)
	}
	if got := sumI915(nil); got != (regions{}) {
		t.Errorf("no answer: %+v", got)
	}
}
