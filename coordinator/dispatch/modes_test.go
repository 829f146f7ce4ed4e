package dispatch

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// What is known about the model on that node goes with every call that may need it.
func TestTheModeGoesWithTheCall(t *testing.T) {
	for _, kind := range []engine.CallKind{engine.CallGenerate, engine.CallPlan, engine.CallEvaluate} {
		inBubble(t, func(t *testing.T, r *rig) {
			a := attempt("k", kind, `{"criteria":["c"],"goal":"g","prompt":"p"}`, `"s"`)
			a.Digest = "probed"
			r.one(a)
			a.Key, a.Digest = "k2", "another"
			r.one(a)
			spec := func(i int) *workerv1.ModelSpec {
				return r.m.requests()[i].(interface{ GetModel() *workerv1.ModelSpec }).GetModel()
			}
			if want := r.Mode("", "probed"); !proto.Equal(spec(0).GetMode(), want) || spec(1).GetMode() != nil {
				t.Errorf("%s: %v, then %v", kind, spec(0), spec(1))
			}
		})
	}
}
