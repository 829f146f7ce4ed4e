package fleet

import (
	"testing"
	"time"

	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// ollama#12323: in a container the driver fails after hours ("Failed to initialize NVML"), and Ollama goes on, on the processor.
func TestDockerLosesTheGPUAndTheNodeTakesNoGPUCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		m := newMachine("den")
		h.start("den:1", m)
		f := h.fleet(static("den:1"))
		states := func(now ...string) {
			r := report("qwen3:8b")
			for _, s := range now {
				r.Devices = append(r.Devices, &workerv1.Device{Name: "RTX 3090", PoolId: "gpu:0", State: s})
			}
			m.say(r)
			settle(10 * time.Second)
		}
		for _, c := range []struct {
			devices []string
			want    scheduler.NodeState
		}{
			{[]string{"ok"}, scheduler.NodeUp},
			{[]string{"lost"}, scheduler.NodeDegraded},
			{[]string{"lost", "ok"}, scheduler.NodeUp}, // the other one goes on
			{[]string{"asleep"}, scheduler.NodeUp},
			{[]string{"unsupported"}, scheduler.NodeUp}, // a machine whose processor was chosen knowingly
			{nil, scheduler.NodeUp},
		} {
			states(c.devices...)
			h.want(f, "den", c.want)
			if nodes, _ := f.View(); (nodes[0].Problem == "") != (c.want == scheduler.NodeUp) {
				t.Errorf("%v: problem %q", c.devices, nodes[0].Problem)
			}
		}
	})
}
