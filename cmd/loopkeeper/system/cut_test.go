package system

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// cutStore is the real ledger, until the coordinator dies with it: from then on nothing becomes durable, and nothing that
// rests on the last commit gets out.
type cutStore struct {
	ledger.Store
	mu   sync.Mutex
	left int  // commits until the end; negative: no end
	last bool // the commit at the end is durable although nobody hears of it
}

var errDead = errors.New("the coordinator is dead")

// die lets so many commits through, and one more that is durable when last is set.
func (c *cutStore) die(commits int, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.last = commits, last
}

func (c *cutStore) Append(ctx context.Context, commit ledger.Commit) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.left < 0:
	case c.left > 0:
		c.left--
	case !c.last:
		return errDead
	default:
		c.last = false
		return errors.Join(errDead, c.Store.Append(ctx, commit))
	}
	return c.Store.Append(ctx, commit)
}

// result is what a run's script returned, byte for byte.
func (h *house) result(id string) string {
	h.t.Helper()
	r, err := h.client.GetResult(h.t.Context(), &coordinatorv1.GetResultRequest{RunId: id})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, o := range r.GetOutputs() {
		if o.GetName() == "result" {
			return fmt.Sprintf("%s %s", o.GetValueJson(), o.GetRef().GetSha256())
		}
	}
	h.t.Fatalf("run %s has no result: %v", id, r.GetOutputs())
	return ""
}

func random(t *testing.T) *rand.Rand {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func TestCoordinatorDiesFiveTimes(t *testing.T) {
	t.Parallel()
	const n, deaths = 200, 5
	input := map[string]any{"model": model, "prompt": prompt, "items": reports(n)}
	undisturbed := start(t, brisk(), brisk())
	first := undisturbed.submit("map", input, model)
	undisturbed.end(first, "completed")

	rng := random(t)
	h := start(t, brisk(), brisk())
	id := h.submit("map", input, model)
	for death := range deaths {
		h.store.die(rng.IntN(30), rng.IntN(2) == 0)
		if err := h.coordinator.Wait(t.Context()); !errors.Is(err, errDead) {
			t.Fatalf("death %d: the coordinator ended with %v", death, err)
		}
		h.stopCoordinator()
		h.startCoordinator()
	}
	r := h.end(id, "completed")
	if c := r.GetItems(); c.GetTotal() != n || c.GetSucceeded() != n {
		t.Errorf("counts are %v", c)
	}
	calls := byItem(h.calls())
	for i := range n {
		// What ran while the coordinator was away went on, and was joined or fetched under its key.
		if name := report(i)[:len("Report 000")]; calls[name] != 1 {
			t.Errorf("%s was asked %d times", name, calls[name])
		}
	}
	if got, want := h.result(id), undisturbed.result(first); got != want {
		t.Errorf("the result is\n%s\nand undisturbed\n%s", got, want)
	}
}

func TestWorkerIsLostAndComesBack(t *testing.T) {
	t.Parallel()
	const n = 120
	h := &house{t: t, dir: t.TempDir(), net: newNetwork(), lostAfter: 6 * time.Second}
	h.open(brisk(), brisk())
	id := h.submit("map", map[string]any{"model": model, "prompt": prompt, "items": reports(n)}, model)
	h.watch(id, func(r *coordinatorv1.Run) bool {
		return r.GetItems().GetSucceeded() >= 20 && slices.ContainsFunc(r.GetInFlight(), func(f *coordinatorv1.InFlight) bool { return f.GetNode() == "machine 1" })
	})
	h.stopWorker(0)
	h.eventually("the node is lost", func() bool { return h.node("node-1").GetState() == "lost" })
	if h.node("node-1").GetProblem() == "" {
		t.Error("nobody says since when the node is lost")
	}
	r := h.end(id, "completed")
	if r.GetItems().GetSucceeded() != n {
		t.Errorf("counts are %v", r.GetItems())
	}
	twice := 0
	for name, calls := range byItem(h.calls()) {
		if calls > 2 {
			t.Errorf("%s was asked %d times", name, calls)
		} else if calls == 2 {
			twice++
		}
	}
	if twice > 1 { // a machine with one slot had one item in flight
		t.Errorf("%d items were asked twice", twice)
	}
	h.startWorker(0)
	h.up(2)
	next := h.submit("map", map[string]any{"model": model, "prompt": prompt, "items": reports(40)}, model)
	if r := h.end(next, "completed"); len(r.GetNodes()) != 2 {
		t.Errorf("after it came back the work was shared like this: %v", r.GetNodes())
	}
}

func (h *house) node(id string) *coordinatorv1.Node {
	h.t.Helper()
	r, err := h.client.ListNodes(h.t.Context(), &coordinatorv1.ListNodesRequest{})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, n := range r.GetNodes() {
		if n.GetId() == id {
			return n
		}
	}
	h.t.Fatalf("there is no node %s among %v", id, r.GetNodes())
	return nil
}
