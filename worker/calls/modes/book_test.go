package modes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

func book() *Book { return NewBook(slog.New(slog.DiscardHandler)) }

// obeys answers as a server that applies the format.
func obeys(r ollama.Request) ollama.Reply {
	var schema struct {
		Properties map[string]struct{ Const int }
	}
	if err := json.Unmarshal(r.Format, &schema); err != nil {
		return ollama.Reply{}
	}
	return ollama.Reply{Text: fmt.Sprintf(`{"b":%d,"a":%d}`, schema.Properties["b"].Const, schema.Properties["a"].Const), DoneReason: "stop"}
}

// counted is an obedient server that counts; after takes time.
func counted(n *atomic.Int32, took time.Duration) Ask {
	return func(ctx context.Context, _ string, r ollama.Request) (ollama.Reply, error) {
		n.Add(1)
		select {
		case <-time.After(took):
			return obeys(r), nil
		case <-ctx.Done():
			return ollama.Reply{}, context.Cause(ctx)
		}
	}
}

func TestConcurrentCallsShareAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, n := book(), atomic.Int32{}
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				m, err := b.Find(t.Context(), "1", Target{Digest: "d"}, Mode{}, counted(&n, time.Second))
				if err != nil || !m.Applied() {
					t.Errorf("%+v %v", m, err)
				}
			})
		}
		wait.Wait()
		if n.Load() != 1 {
			t.Errorf("%d probes", n.Load())
		}
	})
}

// The call that probes may be cancelled; the others must not fall with it.
func TestACancelledProbeIsTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, n := book(), atomic.Int32{}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("the caller went away")
		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := b.Find(ctx, "1", Target{Digest: "d"}, Mode{}, counted(&n, time.Minute)); !errors.Is(err, gone) {
				t.Errorf("the cancelled one: %v", err)
			}
		})
		synctest.Wait()
		wait.Go(func() {
			if m, err := b.Find(t.Context(), "1", Target{Digest: "d"}, Mode{}, counted(&n, time.Minute)); err != nil || !m.Applied() {
				t.Errorf("the other: %+v %v", m, err)
			}
		})
		synctest.Wait()
		cancel(gone)
		wait.Wait()
		if n.Load() != 2 {
			t.Errorf("%d probes, want 2", n.Load())
		}
	})
}

// What fails on every way says nothing about the ways: it must not be kept as a model without a mode.
func TestAFailureIsNotKept(t *testing.T) {
	for _, kind := range []ollama.Kind{ollama.Unreachable, ollama.Busy, ollama.OutOfMemory, ollama.ModelMissing, ollama.StreamBroken, ollama.InputTooLong} {
		b, tries := book(), 0
		fails := &ollama.Error{Kind: kind}
		_, err := b.Find(t.Context(), "1", Target{Digest: "d"}, Mode{}, func(context.Context, string, ollama.Request) (ollama.Reply, error) {
			tries++
			return ollama.Reply{}, fails
		})
		if !errors.Is(err, fails) || tries != 1 {
			t.Errorf("%s: %v after %d tries", kind, err, tries)
		}
		if m, err := b.Find(t.Context(), "1", Target{Digest: "d"}, Mode{}, counted(new(atomic.Int32), 0)); err != nil || !m.Applied() {
			t.Errorf("after %s: %+v %v", kind, m, err)
		}
	}
	// A runner that dies on one way may live on another; where none passes it stays unknown.
	b := book()
	dies := &ollama.Error{Kind: ollama.ServerError}
	m, err := b.Find(t.Context(), "1", Target{Digest: "d"}, Mode{}, func(_ context.Context, endpoint string, r ollama.Request) (ollama.Reply, error) {
		if r.Think == ollama.ThinkOff {
			return ollama.Reply{}, dies
		}
		return obeys(r), nil
	})
	if err != nil || m.Endpoint != Chat || m.Think != ollama.ThinkOn {
		t.Errorf("%+v %v", m, err)
	}
	if _, err := book().Find(t.Context(), "1", Target{Digest: "d"}, Mode{}, func(context.Context, string, ollama.Request) (ollama.Reply, error) {
		return ollama.Reply{}, dies
	}); !errors.Is(err, dies) {
		t.Errorf("%v", err)
	}
}

func TestWhatSomebodyElseFoundOut(t *testing.T) {
	n := atomic.Int32{}
	learned := Mode{Endpoint: Chat, Think: ollama.ThinkLow, Field: Content, ServerVersion: "1", Time: time.Now()}
	b := book()
	if m, err := b.Find(t.Context(), "1", Target{Digest: "d"}, learned, counted(&n, 0)); err != nil || m != learned || n.Load() != 0 {
		t.Errorf("%+v %v after %d probes", m, err, n.Load())
	}
	if m, ok := b.Lookup("1", "d"); !ok || m != learned {
		t.Errorf("not kept: %+v", m)
	}
	if m, err := b.Find(t.Context(), "2", Target{Digest: "d"}, learned, counted(&n, 0)); err != nil || m.Endpoint != Generate || m.ServerVersion != "2" || n.Load() != 1 {
		t.Errorf("on another version: %+v %v after %d probes", m, err, n.Load())
	}
	if _, ok := b.Lookup("1", "other"); ok {
		t.Error("known although nobody asked")
	}
}

// A doubt has the next call probe, but answers that are the model's own fault must not have every call probe.
func TestDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, n, target := book(), atomic.Int32{}, Target{Digest: "d"}
		find := func() {
			t.Helper()
			if _, err := b.Find(t.Context(), "1", target, Mode{}, counted(&n, 0)); err != nil {
				t.Fatal(err)
			}
		}
		probes := func(want int32, when string) {
			t.Helper()
			if n.Load() != want {
				t.Errorf("%s: %d probes, want %d", when, n.Load(), want)
			}
		}
		find()
		find()
		probes(1, "without doubt")
		b.Doubt("1", "d")
		find()
		find()
		probes(2, "a doubt")
		for range 100 {
			b.Doubt("1", "d")
			find()
		}
		probes(2, "doubts that have just been answered")
		time.Sleep(again)
		find()
		find()
		probes(3, "a doubt that stayed")
		// The server changed its mind: the way that passed is another one, and may be doubted at once.
		time.Sleep(again)
		b.Doubt("1", "d")
		m, err := b.Find(t.Context(), "1", target, Mode{}, func(_ context.Context, endpoint string, r ollama.Request) (ollama.Reply, error) {
			if endpoint == Generate {
				return ollama.Reply{Text: "no", DoneReason: "stop"}, nil
			}
			return obeys(r), nil
		})
		if err != nil || m.Endpoint != Chat {
			t.Fatalf("%+v %v", m, err)
		}
		b.Doubt("1", "d")
		find()
		probes(4, "a doubt about a way that is new")
		b.Doubt("1", "nobody knows it")
	})
}

func TestABookIsBounded(t *testing.T) {
	b, n := book(), atomic.Int32{}
	for i := range most + 50 {
		if _, err := b.Find(t.Context(), "1", Target{Digest: fmt.Sprint(i)}, Mode{}, counted(&n, 0)); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.entries) != most || len(b.order) != most {
		t.Errorf("%d kept in order of %d", len(b.entries), len(b.order))
	}
	if _, ok := b.Lookup("1", "49"); ok {
		t.Error("the oldest is still there")
	}
	if _, ok := b.Lookup("1", "50"); !ok {
		t.Error("a newer one is gone")
	}
}
