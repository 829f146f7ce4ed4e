package serve

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

// slow takes five seconds and more for an answer.
var slow = ollamatest.Config{DecodeRate: 10}

func TestSecondCallWithTheKeyJoinsTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow)
		first, err := r.client.Generate(t.Context(), request("k"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		again := request("k")
		again.Item = byHash(again.Item.GetText()) // by hash it is the same request
		joined := r.mustGenerate(t, again)
		out, _, err := follow(first)
		if err != nil || !proto.Equal(out, joined) || out.GetFailure() != nil {
			t.Errorf("%v: %v and %v", err, out, joined)
		}
		start := time.Now()
		if kept := r.mustGenerate(t, request("k")); !proto.Equal(kept, out) || time.Since(start) != 0 {
			t.Errorf("the kept result took %s: %v", time.Since(start), kept)
		}
		if n := len(r.ollama.Calls()); n != 1 {
			t.Errorf("ollama was called %d times", n)
		}
	})
}

func TestAnotherRequestUnderTheKeyIsAnotherAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow)
		first, err := r.client.Generate(t.Context(), request("k"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		other := request("k")
		other.Prompt = "List the parts of {{item}}"
		if out := r.mustGenerate(t, other); out.GetFailure() != nil || !strings.Contains(out.GetPrompt(), "List the parts") {
			t.Errorf("%v", out)
		}
		if out, _, err := follow(first); err != nil || out.GetFailure().GetKind() != "cancelled" {
			t.Errorf("the first goes on: %v %v", out, err)
		}
		if out := r.mustGenerate(t, other); !strings.Contains(out.GetPrompt(), "List the parts") || len(r.ollama.Calls()) != 2 {
			t.Errorf("the second is not what is kept: %v", out)
		}
	})
}

func TestCallsOfTwoKindsNeverShareAnAttempt(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	// Call and model alone: the same bytes on the wire for both kinds.
	call, model := &workerv1.Call{Key: "k"}, &workerv1.ModelSpec{Name: "qwen3:8b"}
	if _, err := r.client.Embed(t.Context(), &workerv1.EmbedRequest{Call: call, Model: model}); err != nil {
		t.Fatal(err)
	}
	p, err := r.client.Plan(t.Context(), &workerv1.PlanRequest{Call: call, Model: model})
	if err != nil || p.GetOutcome().GetFailure().GetKind() != "bad_request" {
		t.Errorf("%v %v", p, err)
	}
}

func TestDroppedConnectionDoesNotCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow)
		client, conn := r.dial()
		if _, err := client.Generate(t.Context(), request("k")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		conn.Close()
		time.Sleep(time.Minute)
		start := time.Now()
		if out := r.mustGenerate(t, request("k")); out.GetFailure() != nil || time.Since(start) != 0 || len(r.ollama.Calls()) != 1 {
			t.Errorf("after %s and %d calls: %v", time.Since(start), len(r.ollama.Calls()), out)
		}
	})
}

func TestOrphanIsCancelledAndDoneAnewForWhoComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{DecodeRate: 0.02}) // half an hour and more for an answer; a token in less than a minute
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := r.client.Generate(ctx, request("k")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		cancel()
		time.Sleep(4 * time.Minute)
		if running, _ := r.server.calls.keys(); !slices.Equal(running, []string{"k"}) {
			t.Fatalf("it runs for five minutes with nobody listening, but after four there is %q", running)
		}
		// Somebody who listens keeps it alive.
		ctx, cancel = context.WithCancel(t.Context())
		if _, err := r.client.Generate(ctx, request("k")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		cancel()
		time.Sleep(4 * time.Minute)
		if len(r.ollama.Calls()) != 1 || !r.ollama.Calls()[0].Ended.IsZero() {
			t.Fatalf("calls %+v", r.ollama.Calls())
		}
		time.Sleep(2 * time.Minute)
		if c := r.ollama.Calls()[0]; c.Ended.IsZero() || c.Status != 499 {
			t.Fatalf("the orphan still has its slot: %+v", c)
		}
		if running, kept := r.server.calls.keys(); len(running)+len(kept) != 0 {
			t.Fatalf("kept %q %q", running, kept)
		}
		if out := r.mustGenerate(t, request("k")); out.GetFailure() != nil || len(r.ollama.Calls()) != 2 {
			t.Errorf("who comes later gets %v", out)
		}
	})
}

func TestCancelEndsTheCallAndFreesTheSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow)
		stream, err := r.client.Generate(t.Context(), request("k"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if _, err := r.client.Cancel(t.Context(), &workerv1.CancelRequest{Key: "k"}); err != nil {
			t.Fatal(err)
		}
		out, _, err := follow(stream)
		if err != nil || out.GetFailure().GetKind() != "cancelled" || out.GetFailure().GetAdvice() != workerv1.Advice_ADVICE_NEVER || out.GetThinking() == "" {
			t.Errorf("%v %v", out, err)
		}
		synctest.Wait()
		if c := r.ollama.Calls()[0]; c.Ended.IsZero() {
			t.Errorf("the slot is still taken: %+v", c)
		}
	})
}

func TestCancelThatOvertakesItsCallStillCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, slow)
		for _, key := range []string{"k", "unknown"} {
			if _, err := r.client.Cancel(t.Context(), &workerv1.CancelRequest{Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		if out := r.mustGenerate(t, request("k")); out.GetFailure().GetKind() != "cancelled" || len(r.ollama.Calls()) != 0 {
			t.Errorf("%v, %d calls", out, len(r.ollama.Calls()))
		}
		time.Sleep(11 * time.Minute)
		r.client.Cancel(t.Context(), &workerv1.CancelRequest{Key: "later"})
		if n := len(r.server.calls.cancelled); n != 1 {
			t.Errorf("%d cancelled keys are remembered", n)
		}
	})
}

func TestKeptResultsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{})
		r.mustGenerate(t, request("k"))
		time.Sleep(9 * time.Minute)
		r.mustGenerate(t, request("k"))
		if n := len(r.ollama.Calls()); n != 1 {
			t.Fatalf("%d calls within ten minutes", n)
		}
		time.Sleep(2 * time.Minute)
		if _, kept := r.server.calls.keys(); len(kept) != 0 || r.server.calls.kept != 0 {
			t.Errorf("kept %q, %d bytes", kept, r.server.calls.kept)
		}
		r.mustGenerate(t, request("k"))
		if n := len(r.ollama.Calls()); n != 2 {
			t.Errorf("%d calls", n)
		}
	})
}

func TestKeptResultsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(time.Hour, time.Minute)
		defer r.stop()
		r.limit = 10_000
		for i := range 100 {
			key := fmt.Sprint(i)
			a, err := r.join(key, "p", func(context.Context, func(*workerv1.Progress)) proto.Message {
				return &workerv1.Outcome{Text: strings.Repeat("x", 3000)}
			})
			if err != nil {
				t.Fatal(err)
			}
			<-a.done
			r.leave(key, a)
			time.Sleep(time.Second)
		}
		if _, kept := r.keys(); !slices.Equal(kept, []string{"97", "98", "99"}) || r.kept > r.limit {
			t.Errorf("kept %q, %d bytes", kept, r.kept)
		}
	})
}

// Ten thousand small results within the time that they are kept: a report names the newest, and no more than a coordinator takes.
func TestAReportNamesABoundedNumberOfKeptResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRegistry(time.Hour, time.Minute)
		defer r.stop()
		for i := range 10_000 {
			key := fmt.Sprintf("run/%05d", i)
			a, err := r.join(key, "p", func(context.Context, func(*workerv1.Progress)) proto.Message { return &workerv1.Outcome{Text: "x"} })
			if err != nil {
				t.Fatal(err)
			}
			<-a.done
			r.leave(key, a)
		}
		synctest.Wait()
		_, kept := r.keys()
		if len(kept) != keptCount || kept[len(kept)-1] != "run/09999" || kept[0] != fmt.Sprintf("run/%05d", 10_000-keptCount) {
			t.Errorf("%d are kept, from %s to %s", len(kept), kept[0], kept[len(kept)-1])
		}
		time.Sleep(2 * time.Hour)
		if _, kept := r.keys(); len(kept) != 0 || r.kept != 0 || r.ended.Len() != 0 {
			t.Errorf("after their time %d are kept, %d bytes", len(kept), r.kept)
		}
	})
}

func TestStoppedRegistryBeginsNothing(t *testing.T) {
	r := newRegistry(time.Hour, time.Hour)
	var ended atomic.Bool
	a, err := r.join("k", "p", func(ctx context.Context, _ func(*workerv1.Progress)) proto.Message {
		<-ctx.Done()
		ended.Store(true)
		return &workerv1.Outcome{}
	})
	if err != nil {
		t.Fatal(err)
	}
	r.stop()
	if !ended.Load() {
		t.Error("stop did not wait for the attempt")
	}
	r.leave("k", a)
	if _, err := r.join("other", "p", nil); apierr.CodeOf(err) != apierr.Unavailable {
		t.Errorf("%v", err)
	}
}
