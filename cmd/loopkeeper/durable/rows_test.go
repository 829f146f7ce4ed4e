package durable

import (
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// The tests here are for rows of docs/durability.md that need the whole coordinator.

// open starts the house over the ledger in a folder, until shut or the end of the test.
func (h *house) open(dir string) {
	h.t.Helper()
	store, err := ledger.Open(h.t.Context(), ledger.Options{Dir: dir})
	if err == nil {
		err = h.start(store)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	h.shut = sync.OnceFunc(func() {
		h.stop()
		if err := store.Close(); err != nil {
			h.t.Error(err)
		}
	})
	h.t.Cleanup(h.shut)
}

// must submits a run.
func (h *house) must(id string, err error) string {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	return id
}

// until looks once a second until a run is in a state.
func (h *house) until(id, state string) *coordinatorv1.Run {
	h.t.Helper()
	for range 600 {
		r, err := h.client.GetRun(h.t.Context(), &coordinatorv1.GetRunRequest{RunId: id})
		if err != nil {
			h.t.Fatal(err)
		}
		if r.GetRun().GetState() == state {
			return r.GetRun()
		}
		time.Sleep(time.Second) // of fake time
	}
	h.t.Fatalf("run %s never came to be %s", id, state)
	return nil
}

// Under fake time only what waits for a timer takes any: fifty calls one after the other take none, and after a restart, which finds a timer
// that has gone by, the next call takes none either: nothing is polled, and no lock has to run out first.
func TestNothingIsPolled(t *testing.T) {
	p := program(t, `for (let i = 0; i < 25; i++) await generate({ model: "small:8b", prompt: "p" + i, schema: Answer });
  await sleep(3600);
  for (let i = 25; i < 50; i++) await generate({ model: "small:8b", prompt: "p" + i, schema: Answer }); return 1;`)
	synctest.Test(t, func(t *testing.T) {
		h, dir := newHouse(t, 1, 1), t.TempDir()
		h.open(dir)
		synctest.Wait() // the machine is known
		began := time.Now()
		id := h.must(h.submit(p, "", nil))
		synctest.Wait()
		if took, asked := time.Since(began), h.asked(); took > 0 || asked != 25 {
			t.Errorf("%d of 25 calls were made in no time, and submitting took %s", asked, took)
		}
		h.shut()
		time.Sleep(2 * time.Hour)
		restart := time.Now()
		h.open(dir)
		r, err := h.end(id)
		if err != nil || r.GetState() != "completed" || h.asked() != 50 {
			t.Fatalf("%v, %v", r, err)
		}
		if took := r.GetEnded().AsTime().Sub(restart); took > 100*time.Millisecond {
			t.Errorf("after the restart 25 calls took %s", took)
		}
	})
}

// Nobody owns a run but the ledger: a coordinator of another name and version goes on with it.
func TestARunGoesOnUnderAnotherNameAndVersion(t *testing.T) {
	p := program(t, `await generate({ model: "small:8b", prompt: "one", schema: Answer }); await sleep(3600); return (await generate({ model: "small:8b", prompt: "two", schema: Answer })).of;`)
	synctest.Test(t, func(t *testing.T) {
		h, dir := newHouse(t, 1, 1), t.TempDir()
		h.open(dir)
		id := h.must(h.submit(p, "", nil))
		h.until(id, "waiting")
		h.shut()
		h.name, h.version = "another machine", "0.2.0"
		h.open(dir)
		if r, err := h.end(id); err != nil || r.GetState() != "completed" || r.GetCalls() != 2 {
			t.Errorf("%v, %v", r, err)
		}
	})
}

// A run that was under way when the coordinator died can be cancelled after it, with its child, and so can one that waits for it.
func TestARunIsCancelledAfterARestart(t *testing.T) {
	child := program(t, `await sleep(36000); return 1;`)
	p := program(t, `return (await spawn({ workflow: "sleeper", input: {} })).state;`)
	workflows.List()
	synctest.Test(t, func(t *testing.T) {
		h, dir := newHouse(t, 1, 1), t.TempDir()
		h.open(dir)
		if _, err := coordinatorv1.NewWorkflowServiceClient(h.conn).AddWorkflow(t.Context(), &coordinatorv1.AddWorkflowRequest{Name: "sleeper",
			Bundle: &coordinatorv1.Bundle{Name: child.Name, Code: child.Code, SourceMap: child.SourceMap}}); err != nil {
			t.Fatal(err)
		}
		id := h.must(h.submit(p, "", nil))
		h.until(id, "waiting")
		synctest.Wait() // the child is made beside its parent
		r := h.until(id, "waiting")
		if len(r.GetChildren()) != 1 {
			t.Fatal(r)
		}
		h.shut()
		h.open(dir)
		if _, err := h.client.CancelRun(t.Context(), &coordinatorv1.CancelRunRequest{RunId: id, Reason: "enough"}); err != nil {
			t.Fatal(err)
		}
		for _, run := range append(r.GetChildren(), id) {
			if r, err := h.end(run); err != nil || r.GetState() != "cancelled" {
				t.Errorf("%v, %v", r, err)
			}
		}
	})
}

// Whoever reads while a batch writes gets an answer: nobody is told that the database is busy.
func TestReadersAreNeverTurnedAway(t *testing.T) {
	h := newHouse(t, 2, 8)
	h.open(filepath.Join(t.TempDir(), "ledger"))
	input := put(t, h.client, "data.jsonl", items(1500))
	id := h.must(h.submit(program(t, large), "", input))
	over := make(chan struct{})
	var readers sync.WaitGroup
	looks := make([]int, 4)
	for i := range looks {
		readers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if err := h.look(id); err != nil {
					t.Error(err)
					return
				}
				looks[i]++
			}
		})
	}
	r, err := h.end(id)
	close(over)
	readers.Wait()
	if err != nil || r.GetState() != "completed" {
		t.Fatalf("%v, %v", r, err)
	}
	if n := fmt.Sprint(looks); looks[0] < 3 {
		t.Errorf("there were only %s looks: the test tests little", n)
	}
}

// look reads what people read.
func (h *house) look(id string) error {
	ctx := h.t.Context()
	if _, err := h.client.ListRuns(ctx, &coordinatorv1.ListRunsRequest{}); err != nil {
		return err
	}
	if _, err := h.client.GetItems(ctx, &coordinatorv1.GetItemsRequest{RunId: id}); err != nil && status.Code(err) != codes.NotFound { // there is no batch yet
		return fmt.Errorf("items: %w", err)
	}
	stream, err := h.client.GetTrace(ctx, &coordinatorv1.GetTraceRequest{RunId: id})
	for err == nil {
		_, err = stream.Recv()
	}
	if err != io.EOF {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}
