package dispatch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

type answer = func(context.Context, proto.Message, func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error)

func texts(bodies []*workerv1.Body) (out []string) {
	for _, b := range bodies {
		out = append(out, b.GetText())
	}
	return out
}

func TestSharedTextsTravelOnceAndAgainWhenTheWorkerLacksThem(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		request := `{"context":["rule one","rule two"],"prompt":"{{item}}"}`
		r.one(attempt("a", engine.CallGenerate, request, `"x"`))
		r.one(attempt("b", engine.CallGenerate, request, `"x"`))
		forgets := true // a worker that restarted
		r.m.answer = func(_ context.Context, p proto.Message, _ func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
			if g := p.(*workerv1.GenerateRequest); forgets && g.GetContext()[0].Text == nil {
				e := apierr.New(apierr.MissingArtifact, "not here")
				e.Details = []string{g.GetContext()[0].GetSha256()}
				return nil, apierr.ToStatus(e)
			}
			return &workerv1.Outcome{Text: "t"}, nil
		}
		if got := r.one(attempt("c", engine.CallGenerate, request, `"x"`)); got.Failure != nil {
			t.Errorf("%+v", got.Failure)
		}
		var got [][]string
		for _, p := range r.m.requests() {
			g := p.(*workerv1.GenerateRequest)
			got = append(got, texts(g.GetContext()))
			if g.GetItem().Text == nil || g.GetContext()[0].GetSha256() == "" {
				t.Errorf("the item always comes by value: %v", g)
			}
		}
		full, none := []string{"rule one", "rule two"}, []string{"", ""}
		if !slices.EqualFunc(got, [][]string{full, none, none, full}, slices.Equal) {
			t.Errorf("%q", got)
		}
	})
}

func TestWorkerThatNeverHasEnoughIsNotAskedForEver(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.m.answer = func(context.Context, proto.Message, func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
			return nil, apierr.ToStatus(apierr.New(apierr.MissingArtifact, "not here"))
		}
		got := r.one(attempt("k", engine.CallGenerate, `{"context":["c"],"prompt":"p"}`, ""))
		if got.Failure == nil || got.Failure.Kind != "cannot_send" || got.Failure.Advice != engine.OtherNode || len(r.m.requests()) != 2 {
			t.Errorf("%+v after %d calls", got.Failure, len(r.m.requests()))
		}
	})
}

// until answers a call once the time has passed, whatever happens to its connection.
func until(end time.Time) answer {
	return func(ctx context.Context, _ proto.Message, _ func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
		select {
		case <-time.After(time.Until(end)):
			return &workerv1.Outcome{Text: "done"}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func TestBrokenCallIsJoinedAgainUnderItsKey(t *testing.T) {
	for _, kind := range []engine.CallKind{engine.CallGenerate, engine.CallPlan, engine.CallEvaluate, engine.CallEmbed} {
		t.Run(string(kind), func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.m.answer = until(time.Now().Add(time.Minute))
				r.d.Send(attempt("k", kind, `{"prompt":"p","goal":"g","inputs":["i"]}`, `"x"`))
				r.d.Send(attempt("k", kind, `{"prompt":"p","goal":"g","inputs":["i"]}`, `"x"`)) // no second flight
				for range 3 {
					time.Sleep(10 * time.Second)
					r.disconnect(scheduler.NodeDegraded)
					time.Sleep(2 * time.Second)
					r.connect()
				}
				if got := r.only(0); got.Failure != nil || got.Text != "done" {
					t.Fatalf("%+v %+v", got, got.Failure)
				}
				if n := len(r.m.requests()); n != 4 {
					t.Errorf("%d calls, want one and three more", n)
				}
			})
		})
	}
}

func TestCallThatBreaksAgainAndAgainGoesElsewhere(t *testing.T) {
	for name, err := range map[string]error{
		"reset": status.Error(codes.Unavailable, "reset"), "internal": status.Error(codes.Internal, "RST_STREAM"), "unknown": errors.New("?"),
		"cancelled there": status.Error(codes.Canceled, "?"), "no outcome": nil,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.m.answer = func(context.Context, proto.Message, func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
					return nil, err
				}
				got := r.one(attempt("k", engine.CallGenerate, `{"prompt":"p"}`, ""))
				if got.Failure == nil || got.Failure.Kind != "cannot_send" || got.Failure.Advice != engine.OtherNode || len(r.m.requests()) != 1+maxBroken {
					t.Errorf("%+v after %d calls", got.Failure, len(r.m.requests()))
				}
			})
		})
	}
}

func TestErrorsThatStayAsTheyAreAreNotTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		advice engine.Advice
	}{
		"the request is wrong": {apierr.ToStatus(apierr.New(apierr.InvalidArgument, "options: no mirostat").WithNext("drop it")), engine.Never},
		"an older worker":      {status.Error(codes.Unimplemented, "unknown method"), engine.OtherNode},
		"another fleet":        {apierr.ToStatus(apierr.New(apierr.Conflict, "no")), engine.OtherNode},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.m.answer = func(context.Context, proto.Message, func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
					return nil, c.err
				}
				got := r.one(attempt("k", engine.CallGenerate, `{"prompt":"p"}`, ""))
				if got.Failure == nil || got.Failure.Kind != "cannot_send" || got.Failure.Advice != c.advice || len(r.m.requests()) != 1 {
					t.Errorf("%+v after %d calls", got.Failure, len(r.m.requests()))
				}
			})
		})
	}
}

// TestAnAnswerTooLargeIsTakenOnce is row 17 of research/durability.md §2: a result beyond the transport's limit that is sent again for ever.
func TestAnAnswerTooLargeIsTakenOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.m.answer = func(context.Context, proto.Message, func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
			return &workerv1.Outcome{Text: strings.Repeat("x", 5<<20)}, nil // the rig's connection takes gRPC's default of 4 MiB
		}
		f := r.one(attempt("k", engine.CallGenerate, `{"prompt":"p"}`, "")).Failure
		if f == nil || f.Kind != "result_too_large" || f.Advice != engine.Never || !strings.Contains(strings.Join(f.Next, ""), "max_tokens") || len(r.m.requests()) != 1 {
			t.Errorf("%+v after %d calls", f, len(r.m.requests()))
		}
	})
}

func TestLostNodeSendsTheAttemptElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.m.answer = until(time.Now().Add(time.Hour))
		r.d.Send(attempt("k", engine.CallGenerate, `{"prompt":"p"}`, ""))
		time.Sleep(10 * time.Second)
		r.disconnect(scheduler.NodeDegraded)
		time.Sleep(10 * time.Second)
		if got := r.ended(); len(got) != 0 {
			t.Fatalf("it is not lost yet: %+v", got)
		}
		r.mu.Lock()
		r.state = scheduler.NodeLost
		r.mu.Unlock()
		if f := r.only(0).Failure; f == nil || f.Kind != "node_lost" || f.Advice != engine.OtherNode {
			t.Errorf("%+v", f)
		}
	})
}

func TestCancelBringsWhatTheWorkerHad(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.m.answer = func(ctx context.Context, _ proto.Message, _ func(*workerv1.GenerateResponse) error) (*workerv1.Outcome, error) {
			for {
				r.m.mu.Lock()
				told := slices.Contains(r.m.cancel, "k")
				r.m.mu.Unlock()
				if told {
					return &workerv1.Outcome{Failure: &workerv1.Failure{Kind: "cancelled", Advice: workerv1.Advice_ADVICE_NEVER}, Raw: "half an ans"}, nil
				}
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
		}
		r.d.Send(attempt("k", engine.CallGenerate, `{"prompt":"p"}`, ""))
		time.Sleep(5 * time.Second)
		r.d.Cancel("den", "k")
		if got := r.only(0); got.Failure == nil || got.Failure.Kind != "cancelled" || got.Raw != "half an ans" {
			t.Errorf("%+v", got)
		}
	})
}

func TestCancelEndsWhateverTheWorkerDoes(t *testing.T) {
	for name, before := range map[string]func(*rig){
		"it goes on":      func(*rig) {},
		"it is away":      func(r *rig) { r.disconnect(scheduler.NodeDegraded) },
		"nothing is sent": func(r *rig) { r.disconnect(scheduler.NodeDegraded); time.Sleep(10 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *rig) {
				r.m.answer = until(time.Now().Add(time.Hour))
				r.d.Send(attempt("k", engine.CallGenerate, `{"prompt":"p"}`, ""))
				time.Sleep(5 * time.Second)
				before(r)
				r.d.Cancel("den", "k")
				time.Sleep(time.Minute)
				if got := r.ended(); (len(got) == 0) != (name == "it goes on") {
					t.Errorf("a minute later: %+v", got)
				}
				time.Sleep(time.Minute)
				if f := r.only(0).Failure; f == nil || f.Kind != "cancelled" || f.Advice != engine.Never {
					t.Errorf("%+v", f)
				}
			})
		})
	}
	inBubble(t, func(t *testing.T, r *rig) { // of an attempt of an earlier life
		r.d.Cancel("den", "old")
		synctest.Wait()
		r.m.mu.Lock()
		defer r.m.mu.Unlock()
		if !slices.Equal(r.m.cancel, []string{"old"}) {
			t.Errorf("told %q", r.m.cancel)
		}
	})
}

func TestStopAbandonsSilently(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		r.m.answer = until(time.Now().Add(time.Hour))
		r.m.load = func() (*workerv1.LoadResponse, error) { time.Sleep(time.Minute); return &workerv1.LoadResponse{}, nil }
		r.d.Send(attempt("k", engine.CallGenerate, `{"prompt":"p"}`, ""))
		r.d.Load("den", scheduler.Decision{Model: "m"})
		time.Sleep(5 * time.Second)
		start := time.Now()
		r.d.Stop()
		if time.Since(start) != 0 {
			t.Errorf("it took %s", time.Since(start))
		}
		r.d.Send(attempt("later", engine.CallGenerate, `{"prompt":"p"}`, ""))
		r.d.Cancel("den", "k")
		r.d.Unload("den", scheduler.Decision{Model: "m"})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(r.ended()) != 0 || len(r.moved) != 0 || len(r.m.cancel) != 0 || len(r.m.requests()) != 1 {
			t.Errorf("results %v, moved %v, cancelled %q, %d calls", r.results, r.moved, r.m.cancel, len(r.m.requests()))
		}
	})
}

func TestLoadsAndUnloadsAreReported(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		d := scheduler.Decision{Node: "den", Model: "m", Digest: "d", Context: 4096}
		move := func(begin func(string, scheduler.Decision)) engine.Move {
			t.Helper()
			r.moved = nil
			begin("den", d)
			time.Sleep(time.Minute)
			synctest.Wait()
			if len(r.moved) != 1 || r.moved[0].Digest != "d" {
				t.Fatalf("moved %+v", r.moved)
			}
			return r.moved[0]
		}
		observed := uint64(7)
		r.m.load = func() (*workerv1.LoadResponse, error) {
			return &workerv1.LoadResponse{Spilled: true, LoadNanos: int64(time.Second), ObservedBytes: &observed,
				Loaded: &workerv1.LoadedModel{SizeBytes: 9, VramBytes: 5}}, nil
		}
		got := move(r.d.Load)
		if got.Err != nil || !got.Spilled || got.Took != time.Second || got.Size != 9 || got.VRAM != 5 || got.Observed != (scheduler.Bytes{N: 7, Known: true}) {
			t.Errorf("%+v", got)
		}
		r.m.load = func() (*workerv1.LoadResponse, error) { return &workerv1.LoadResponse{}, nil }
		if got := move(r.d.Load); got.Err != nil || got.Spilled || got.Observed.Known {
			t.Errorf("nothing was measured: %+v", got)
		}
		if got := move(r.d.Unload); got.Err != nil {
			t.Errorf("%+v", got)
		}
		r.m.load = func() (*workerv1.LoadResponse, error) {
			return nil, apierr.ToStatus(apierr.New(apierr.CannotFit, "no room"))
		}
		if got := move(r.d.Load); apierr.CodeOf(got.Err) != apierr.CannotFit {
			t.Errorf("%+v", got)
		}
		r.m.hangs = true // a stuck unload holds up what waits for its room: it is bounded
		if got := move(r.d.Unload); got.Err == nil {
			t.Errorf("%+v", got)
		}
		r.d.Renew("den", d)
		time.Sleep(time.Second)
		r.disconnect(scheduler.NodeLost)
		if got := move(r.d.Load); got.Err == nil {
			t.Errorf("%+v", got)
		}
		r.d.Renew("den", d) // nobody waits for it
		if n := r.m.renews; len(n) != 1 || n[0].GetName() != "m" || n[0].GetContext() != 4096 || n[0].GetDigest() != "d" {
			t.Errorf("renewed %v", n)
		}
	})
}
