package serve

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// What a request may ask for. The bounds are far beyond what any model of today does; they keep nonsense from a server
// that takes a context of -1 for its default, and a temperature that is no number for an end of the process.
const (
	mostContext     = 4 << 20 // tokens
	mostTokens      = 1 << 20 // tokens of one answer
	mostTemperature = 5
	mostSteps       = 100
	mostTopK        = 1 << 20
)

// bounds checks numbers; the first that is out of its bounds stays.
type bounds struct{ err error }

func (b *bounds) within(what string, v, least, most float64) {
	if b.err == nil && !(v >= least && v <= most) { // NaN is within nothing
		b.err = apierr.New(apierr.InvalidArgument, "%s is %v: want %s", what, v, wanted(least, most))
	}
}

func wanted(least, most float64) string {
	if math.IsInf(most, 1) {
		return fmt.Sprintf("%.0f or more", least)
	}
	return fmt.Sprintf("%.0f to %.0f", least, most)
}

// checkNumbers refuses a request, whichever it is, with a number that no call can mean. Zero is "not said" for all but
// temperatures.
func checkNumbers(r proto.Message) error {
	var b bounds
	if c, ok := r.(interface{ GetCall() *workerv1.Call }); ok {
		b.within("deadline_seconds", float64(c.GetCall().GetDeadlineSeconds()), 0, math.Inf(1))
	}
	if m, ok := r.(interface{ GetModel() *workerv1.ModelSpec }); ok {
		b.within("context", float64(m.GetModel().GetContext()), 0, mostContext)
	}
	if s, ok := r.(interface{ GetSampling() *workerv1.Sampling }); ok {
		b.within("max_tokens", float64(s.GetSampling().GetMaxTokens()), 0, mostTokens)
		b.within("temperature", s.GetSampling().GetTemperature(), 0, mostTemperature)
	}
	if p, ok := r.(*workerv1.PlanRequest); ok {
		b.within("max_steps", float64(p.GetMaxSteps()), 0, mostSteps)
	}
	return b.err
}

// check refuses options with a number that no call can mean.
func (s settings) check() error {
	var b bounds
	b.within("options: num_ctx", float64(s.NumCtx), 0, mostContext)
	b.within("options: num_predict", float64(s.NumPredict), 0, mostTokens)
	if s.Temperature != nil {
		b.within("options: temperature", *s.Temperature, 0, mostTemperature)
	}
	if s.TopP != nil {
		b.within("options: top_p", *s.TopP, 0, 1)
	}
	if s.TopK != nil {
		b.within("options: top_k", float64(*s.TopK), 0, mostTopK)
	}
	return b.err
}
