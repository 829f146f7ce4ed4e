package engine

import (
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/engine/learn"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// Ollama loads a model that does not fit partly or wholly onto the processor, without an error, and may say that all of it is on
// the GPU. So a load is looked at in three ways: what Ollama says, what the device's free memory says, and how fast the first
// calls write. On a machine without accelerators the rate alone tells.

// spill says why a load did not end where it should, "" when nothing speaks against it.
func (m Move) spill() string {
	switch {
	case m.Spilled:
		return fmt.Sprintf("only %s of %s fit on its accelerator", gibibytes(m.VRAM), gibibytes(m.Size))
	case m.Observed.Known && m.VRAM > 0 && m.Observed.N < m.VRAM/2:
		return fmt.Sprintf("Ollama says that %s are on the accelerator, whose free memory went down by %s only", gibibytes(m.VRAM), gibibytes(m.Observed.N))
	default:
		return ""
	}
}

// checkedCalls is how many calls after a load are held to the known rate. Both have to be too slow: one may have shared the machine
// with something else.
const checkedCalls = 2

// verifyLoad looks at a load that ended well.
func (t *turn) verifyLoad(n scheduler.Node, m Move) {
	e := t.e
	e.facts.loaded(n, m, fileBytes(n, m.Digest))
	if why := m.spill(); why != "" {
		t.spilled(n, m.Digest, m.Model, m.Context, false, why)
	}
}

// verifyCall looks at a call that succeeded, and learns from it. busy is how many calls shared the model at most.
//
// A call that shows that its model spilled has ended: its result is as good as any other and counts. Those beside it are left to
// end, too, although they are slow: what they have written would be lost, and where it is the only machine they would begin again
// on the same one. Nothing new starts there, the model goes when they have ended, and what waits is placed again.
func (t *turn) verifyCall(f *flight, r run.Report) {
	e := t.e
	c := learn.Call{PromptTokens: r.PromptTokens, OutputTokens: r.OutputTokens, Prompt: time.Duration(r.PromptNanos),
		Output: time.Duration(r.OutputNanos), Service: time.Duration(r.TotalNanos - r.LoadNanos)}
	mine, known := e.moves.of(f.node), e.facts.of(f.node, f.digest)
	h := mine.held[f.digest]
	if h != nil && c.Decode() > 0 && h.checked < checkedCalls && h.condemned == "" {
		h.checked++
		if known.Slow(c, f.shared) {
			h.slow++
		}
		switch u := mine.unfit[f.digest]; {
		case h.slow == checkedCalls && u.Slow && u.Times > 1: // loaded anew, and still so: this is how fast it is now
			known.Decode = nil
			e.moves.fits(f.node, f.digest)
		case h.slow == checkedCalls:
			t.spilled(scheduler.Node{ID: f.node, Name: e.roster().name(f.node)}, f.digest, f.model, f.context, true,
				fmt.Sprintf("its calls write %.1f tokens a second, known are %.1f", c.Decode(), known.Estimate().Decode))
		case h.checked == checkedCalls && h.slow == 0:
			e.moves.fits(f.node, f.digest)
		}
	}
	if h == nil || h.slow == 0 || known.Decode == nil {
		e.facts.setSpeed(f.node, f.digest, known.Called(c))
	}
}

// spilled marks a model as not fitting on a node, which also has it unloaded and its tasks placed again.
func (t *turn) spilled(n scheduler.Node, digest, model string, context int, slow bool, why string) {
	u := t.e.moves.spilled(n.ID, digest, context, slow, why, t.now)
	t.place = true
	t.incident(n.ID, IncidentSpilled, model, fmt.Sprintf("%s at %d tokens did not fit on %s: %s; it is unloaded and not tried there again for %s",
		model, context, n.Name, why, u.Until.Sub(t.now).Round(time.Second)))
}

// fits forgets that a model did not fit.
func (m *moves) fits(node, digest string) {
	n := m.of(node)
	if _, marked := n.unfit[digest]; marked {
		delete(n.unfit, digest)
		m.dirty[fact{kindUnfit, node, digest}] = true
	}
}

// fileBytes is the size of a model's file on a node, 0 when it is not known there.
func fileBytes(n scheduler.Node, digest string) uint64 {
	for _, m := range n.Models {
		if m.Digest == digest {
			return m.FileBytes
		}
	}
	return 0
}

func gibibytes(n uint64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }
