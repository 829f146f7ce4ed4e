package api_test

import (
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

func TestFitOverTheWire(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	fit := func(q *coordinatorv1.FitRequest) (*coordinatorv1.FitResponse, *apierr.Error) {
		out, err := r.client.Fit(t.Context(), q)
		return out, apierr.As(apierr.FromStatus(err))
	}
	small, err := fit(&coordinatorv1.FitRequest{Model: "small:1b"})
	// Configured are 4096 tokens; 16 layers of 8 heads of 64 for keys and as much for values, in 16 bits, in two slots.
	if n := small.GetNodes()[0]; err != nil || small.GetContext() != 4096 || small.GetTrained() != 8192 || small.GetDigest() != "aa" || n.GetVerdict() != "yes" ||
		n.GetNeed().GetKvBytes() != 16*8*64*2*2*4096*2 || n.GetSlots() != 2 || !n.GetPulled() || len(n.GetPools()) != 1 || n.GetLargestContext() != 8192 {
		t.Errorf("small fits: %v, %v", small, err)
	}
	one, err := fit(&coordinatorv1.FitRequest{Model: "small:1b", Context: 8192, Slots: 1})
	if n := one.GetNodes()[0]; err != nil || n.GetNeed().GetKvBytes() != small.GetNodes()[0].GetNeed().GetKvBytes() {
		t.Errorf("twice the tokens in half the slots take %v, %v", n.GetNeed(), err)
	}
	huge, err := fit(&coordinatorv1.FitRequest{Model: "huge:70b"})
	if n := huge.GetNodes()[0]; err != nil || n.GetVerdict() != "no" || n.GetShortBytes() == 0 || n.GetLargestEmpty() != 0 {
		t.Errorf("huge fits: %v, %v", huge, err)
	}
	shape := newMachine("x").report.GetModels()[0].GetShape()
	file, err := fit(&coordinatorv1.FitRequest{Model: "from a file", Shape: shape, FileBytes: 1 << 30})
	if n := file.GetNodes()[0]; err != nil || n.GetPulled() || n.GetVerdict() != "yes" || file.GetContext() != 8192 || file.GetDigest() != "" {
		t.Errorf("of a file: %v, %v", file, err)
	}
	for _, q := range []*coordinatorv1.FitRequest{{}, {Model: "small:1b", Context: -1}, {Model: "small:1b", Slots: -1}, {Model: "small:1b", Slots: 5000}} {
		_, err := fit(q)
		refused(t, err, apierr.InvalidArgument)
	}
	_, err = fit(&coordinatorv1.FitRequest{Model: "nobody:7b"})
	refused(t, err, apierr.NotFound, "nobody:7b")
}
