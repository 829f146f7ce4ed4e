package serve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// graphics watches whether Ollama computes where the probe says that it could. From 0.30 on it leaves a processor's own graphics out
// unless it is told not to, and says so in its log alone: everything works, at the speed of the processor.
type graphics struct {
	since string // when this Ollama was first seen
	used  bool   // a model of it was on an accelerator
}

// look adds a warning to a report of a machine whose only accelerator Ollama leaves out, or is expected to. What a model that was
// loaded shows is better than what is expected.
func (g *graphics) look(r *workerv1.NodeReport) {
	if since := r.GetOllama().GetSince().String(); since != g.since {
		*g = graphics{since: since}
	}
	g.used = g.used || slices.ContainsFunc(r.GetLoaded(), func(l *workerv1.LoadedModel) bool { return l.GetVramBytes() > 0 })
	d := onlyIntegrated(r)
	if d == nil || g.used || r.GetSimulated() || !ollama.LeavesIntegratedOut(r.GetOllama().GetVersion()) {
		return
	}
	text := fmt.Sprintf("Ollama %s leaves %s out unless OLLAMA_IGPU_ENABLE=1 is set for it, because it is a part of the processor", r.GetOllama().GetVersion(), d.GetName())
	if len(r.GetLoaded()) > 0 {
		var names []string
		for _, l := range r.GetLoaded() {
			names = append(names, l.GetName())
		}
		text = fmt.Sprintf("Ollama %s computes %s on the processor and leaves %s out, because OLLAMA_IGPU_ENABLE=1 is not set for it", r.GetOllama().GetVersion(),
			strings.Join(names, ", "), d.GetName())
	}
	r.Warnings = append(r.Warnings, &workerv1.Warning{Code: "integrated_left_out", Text: text,
		Next: "set OLLAMA_IGPU_ENABLE=1 for Ollama, then restart Ollama"})
}

// onlyIntegrated is a machine's accelerator when that is a part of the processor and there is no other; AMD's and Intel's are left out.
func onlyIntegrated(r *workerv1.NodeReport) (only *workerv1.Device) {
	for _, d := range r.GetDevices() {
		switch {
		case d.GetState() != string(hwprobe.StateOK) && d.GetState() != string(hwprobe.StateAsleep):
		case !d.GetIntegrated(), d.GetVendor() != string(hwprobe.AMD) && d.GetVendor() != string(hwprobe.Intel):
			return nil
		case only == nil:
			only = d
		}
	}
	return only
}
