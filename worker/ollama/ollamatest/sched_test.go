package ollamatest

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollama/ollama/api"
)

// Sizes with a context of 4096, measured with Ollama (research: scheduling §2.2): llama3.1:8b 5.54 GiB, qwen2.5:7b 5.03 GiB.
// llama3.2:3b takes some 2.8 GiB, llama3.3:70b 41.3 GiB.
var four = with("llama3.1:8b", "qwen2.5:7b", "llama3.2:3b", "llama3.3:70b", "nomic-embed-text")

func wantLoaded(t *testing.T, s *Server, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := s.Loaded(); !slices.Equal(got, want) {
		t.Errorf("loaded %v, want %v", got, want)
	}
}

func TestEviction(t *testing.T) {
	hour, minute := keep(time.Hour), keep(time.Minute)
	type request struct {
		model string
		keep  *api.Duration
	}
	for _, c := range []struct {
		name   string
		memory Bytes
		max    int
		loads  []request
		want   []string
	}{
		{"what fits stays", 12 << 30, 0, []request{{"llama3.1:8b", nil}, {"qwen2.5:7b", nil}}, []string{"llama3.1:8b", "qwen2.5:7b"}},
		{"one too many goes", 8 << 30, 0, []request{{"llama3.1:8b", nil}, {"qwen2.5:7b", nil}}, []string{"qwen2.5:7b"}},
		{"shortest keep-alive first, not the least recently used", 12 << 30, 0,
			[]request{{"llama3.1:8b", hour}, {"qwen2.5:7b", minute}, {"llama3.2:3b", nil}}, []string{"llama3.1:8b", "llama3.2:3b"}},
		{"for ever goes last", 12 << 30, 0,
			[]request{{"llama3.1:8b", keep(-1)}, {"qwen2.5:7b", hour}, {"llama3.2:3b", nil}}, []string{"llama3.1:8b", "llama3.2:3b"}},
		{"then by name, not by size", 12 << 30, 0,
			[]request{{"qwen2.5:7b", hour}, {"llama3.1:8b", hour}, {"llama3.2:3b", nil}}, []string{"qwen2.5:7b", "llama3.2:3b"}},
		{"a model too large evicts all and spills", 24 << 30, 0,
			[]request{{"llama3.1:8b", hour}, {"qwen2.5:7b", hour}, {"llama3.3:70b", nil}}, []string{"llama3.3:70b"}},
		{"no more than the allowed number", 80 << 30, 2,
			[]request{{"llama3.1:8b", hour}, {"qwen2.5:7b", minute}, {"llama3.2:3b", nil}}, []string{"llama3.1:8b", "llama3.2:3b"}},
		{"a reload of the same model evicts nobody else", 12 << 30, 0,
			[]request{{"llama3.1:8b", hour}, {"qwen2.5:7b", minute}, {"llama3.1:8b", nil}}, []string{"llama3.1:8b", "qwen2.5:7b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := pipe(t, Config{Memory: c.memory, MaxLoaded: c.max, Models: four})
				for _, r := range c.loads {
					must(t, load(client, r.model, r.keep))
				}
				wantLoaded(t, s, c.want...)
			})
		})
	}
}

// A model too large for the device loads without an error, partly on the host, and is slow (research: §2.1 point 6).
func TestSpill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := pipe(t, Config{Memory: 24 << 30, Models: four, DecodeRate: 10})
		must(t, load(client, "llama3.3:70b", nil))
		ps, err := client.ListRunning(t.Context())
		must(t, err)
		m := ps.Models[0]
		if m.SizeVRAM >= m.Size || m.SizeVRAM < 20<<30 || m.SizeVRAM > 24<<30 {
			t.Errorf("size %d, on the device %d: want most of 24 GiB, but not all of the model", m.Size, m.SizeVRAM)
		}
		spilled, err := say(client, &api.GenerateRequest{Model: "llama3.3:70b", Prompt: "Say a few words about this.", Options: numCtx(4096)})
		must(t, err)
		onHost := float64(m.Size-m.SizeVRAM) / float64(m.Size)
		want := time.Duration(float64(spilled.EvalCount) / 10 * (1 + 7*onHost) * float64(time.Second))
		if d := spilled.EvalDuration; d < want-time.Millisecond || d > want+time.Millisecond {
			t.Errorf("%d tokens took %v, want %v", spilled.EvalCount, d, want)
		}
	})
}

func TestSpillNeedsHostMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := pipe(t, Config{Memory: 24 << 30, HostMemory: 4 << 30, Models: four})
		err := load(client, "llama3.3:70b", nil)
		// 41.3 GiB less the 24 of the device is 17.3; whole layers of half a GiB make it up to 17.8
		wantStatus(t, err, http.StatusInternalServerError, "model requires more system memory (17.8 GiB) than is available (4.0 GiB)")
		wantLoaded(t, s)
	})
}

func TestReload(t *testing.T) {
	for _, c := range []struct {
		name          string
		version       string
		first, second map[string]any
		shift         bool // of the second; the first shifts
		loads         int
	}{
		{"same options", "", numCtx(4096), numCtx(4096), true, 1},
		{"another context", "", numCtx(4096), numCtx(8192), true, 2},
		{"contexts that clamp to the same", "", numCtx(32768), numCtx(100000), true, 2},
		{"context left out", "", numCtx(4096), nil, true, 2},
		{"another batch", "", numCtx(4096), map[string]any{"num_ctx": 4096, "num_batch": 256}, true, 2},
		{"num_gpu -1 is as it was", "", map[string]any{"num_ctx": 4096, "num_gpu": 99}, map[string]any{"num_ctx": 4096, "num_gpu": -1}, true, 1},
		{"options of sampling", "", numCtx(4096), map[string]any{"num_ctx": 4096, "temperature": 0, "seed": 7}, true, 1},
		{"another shift", "", numCtx(4096), numCtx(4096), false, 1},
		{"0.30: context left out", "0.30.5", numCtx(4096), nil, true, 1},
		{"0.30: another context", "0.30.5", numCtx(4096), numCtx(8192), true, 2},
		{"0.30: another shift", "0.30.5", numCtx(4096), numCtx(4096), false, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, client := pipe(t, Config{Memory: 24 << 30, Version: c.version, Models: four})
				must(t, loadWith(t.Context(), client, "qwen2.5:7b", c.first, nil))
				_, err := say(client, &api.GenerateRequest{Model: "qwen2.5:7b", Prompt: "hello", Options: c.second, Shift: &c.shift})
				must(t, err)
				if s.Loads() != c.loads {
					t.Errorf("%d loads, want %d", s.Loads(), c.loads)
				}
			})
		})
	}
}

// generating starts a call that takes until its context ends, and waits until it runs.
func generating(t *testing.T, c *api.Client, model string, keepAlive *api.Duration) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		req := &api.GenerateRequest{Model: model, Prompt: "Write about hanging: hang on.", Options: numCtx(4096), KeepAlive: keepAlive}
		c.Generate(ctx, req, func(api.GenerateResponse) error { return nil })
	}()
	synctest.Wait()
	return func() {
		cancel()
		<-done
		synctest.Wait()
	}
}

// later runs a load and says when it is done.
func later(c *api.Client, model string) <-chan error {
	done := make(chan error, 1)
	go func() { done <- load(c, model, nil) }()
	synctest.Wait()
	return done
}

func pending(done <-chan error) bool {
	synctest.Wait()
	return len(done) == 0
}

var hang = []Fault{{Kind: Hang, Probability: 1, Contains: "hang on"}}

// A load that waits for a busy model blocks every other load, but not calls for loaded models (research: §2.1 point 2).
func TestLoadsBlockEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := pipe(t, Config{Memory: 11 << 30, Slots: 2, Models: four, Faults: hang})
		stop := generating(t, client, "llama3.1:8b", nil)
		blocked := later(client, "qwen2.5:7b") // does not fit beside the busy one
		behind := later(client, "llama3.2:3b") // would fit at once
		if !pending(blocked) || !pending(behind) {
			t.Fatal("a load went ahead of a busy model that had to go")
		}
		if _, err := say(client, &api.GenerateRequest{Model: "llama3.1:8b", Prompt: "hello", Options: numCtx(4096)}); err != nil {
			t.Errorf("a call for a loaded model: %v", err)
		}
		stop()
		must(t, <-blocked)
		must(t, <-behind)
		wantLoaded(t, s, "qwen2.5:7b", "llama3.2:3b")
	})
}

// A call with its own keep-alive undoes the eviction that waits for the model (research: §2.1 point 7).
func TestKeepAliveUndoesAnEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := pipe(t, Config{Memory: 9 << 30, Slots: 2, Models: four, Faults: hang})
		stop := generating(t, client, "llama3.1:8b", nil)
		starved := later(client, "qwen2.5:7b")
		_, err := say(client, &api.GenerateRequest{Model: "llama3.1:8b", Prompt: "hello", Options: numCtx(4096), KeepAlive: keep(time.Hour)})
		must(t, err)
		stop()
		if !pending(starved) {
			t.Fatal("the eviction went on")
		}
		wantLoaded(t, s, "llama3.1:8b")
		time.Sleep(time.Hour)
		must(t, <-starved)
		wantLoaded(t, s, "qwen2.5:7b")
	})
}

func TestFullQueueAnswers503(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := pipe(t, Config{Memory: 9 << 30, MaxQueue: 2, Models: four, Faults: hang})
		stop := generating(t, client, "llama3.1:8b", nil)
		loading, first, second := later(client, "qwen2.5:7b"), later(client, "llama3.2:3b"), later(client, "llama3.2:3b")
		err := load(client, "llama3.3:70b", nil) // one is being loaded, two wait
		wantStatus(t, err, http.StatusServiceUnavailable, "server busy, please try again.  maximum pending requests exceeded")
		stop()
		for _, done := range []<-chan error{loading, first, second} {
			must(t, <-done)
		}
	})
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := pipe(t, Config{Memory: 24 << 30, Models: four})
		hello := func(k *api.Duration) {
			t.Helper()
			_, err := say(client, &api.GenerateRequest{Model: "llama3.2:3b", Prompt: "hello", Options: numCtx(4096), KeepAlive: k})
			must(t, err)
			synctest.Wait()
		}
		after := func(d time.Duration, loaded bool) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := len(s.Loaded()) == 1; got != loaded {
				t.Errorf("after %v: loaded %v, want %v", d, got, loaded)
			}
		}
		hello(nil) // five minutes by default
		after(4*time.Minute+59*time.Second, true)
		after(time.Second, false)
		hello(keep(time.Hour))
		hello(nil) // sticky
		after(59*time.Minute, true)
		after(time.Minute, false)
		hello(keep(-1))
		after(1000*time.Hour, true)
		hello(keep(0)) // goes when the call is done
		after(0, false)
	})
}

func TestUnload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := pipe(t, Config{Memory: 24 << 30, Models: four, Faults: hang})
		stop := generating(t, client, "llama3.2:3b", nil)
		last, err := say(client, &api.GenerateRequest{Model: "llama3.2:3b", KeepAlive: keep(0)})
		must(t, err)
		if last.DoneReason != "unload" {
			t.Errorf("done_reason %q", last.DoneReason)
		}
		wantLoaded(t, s, "llama3.2:3b") // it is busy
		stop()
		wantLoaded(t, s)
	})
}

func TestLoadGivenUpIsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, client := pipe(t, Config{Memory: 24 << 30, LoadSpeed: 1 << 30, Models: four})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := loadWith(ctx, client, "llama3.1:8b", numCtx(4096), nil); err == nil {
			t.Fatal("a load of 4.6 GiB at 1 GiB/s took less than a second")
		}
		begun := time.Now()
		must(t, load(client, "llama3.1:8b", nil))
		if d := time.Since(begun).Round(100 * time.Millisecond); d != 4600*time.Millisecond {
			t.Errorf("the load took %v, want 4.6s: 4.58 GiB at 1 GiB/s", d)
		}
		if calls := s.Calls(); calls[0].Status != 499 || calls[1].Status != 200 || s.Loads() != 1 {
			t.Errorf("%d loads, calls %+v", s.Loads(), calls)
		}
	})
}

// From 0.30 on a second model must fit in 80 % of what is free (research: §2.5).
func TestModernEightyPercentRule(t *testing.T) {
	// llama3.2:3b is predicted at 2.3 GiB with a context of 4096, so it needs 2.9 GiB free.
	for _, c := range []struct {
		version string
		memory  Bytes
		want    []string
	}{
		{"0.30.5", 5<<30 + 2<<30, []string{"llama3.2:3b"}},
		{"0.30.5", 5<<30 + 4<<30, []string{"llama3.1:8b", "llama3.2:3b"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, client := pipe(t, Config{Version: c.version, Memory: c.memory, Models: four})
			must(t, load(client, "llama3.1:8b", nil))
			must(t, load(client, "llama3.2:3b", nil))
			wantLoaded(t, s, c.want...)
		})
	}
}

func TestModernLowersAContextNobodySet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := pipe(t, Config{Version: "0.30.5", Memory: 6 << 30, ContextLength: 262144, Models: four})
		must(t, loadWith(t.Context(), client, "llama3.1:8b", nil, nil))
		ps, err := client.ListRunning(t.Context())
		must(t, err)
		if got := ps.Models[0].ContextLength; got != 4096 {
			t.Errorf("context %d, want 4096", got)
		}
	})
}

func TestOutOfMemory(t *testing.T) {
	for version, want := range map[string][]string{"0.17.4": {"llama3.2:3b"}, "0.30.5": nil} {
		synctest.Test(t, func(t *testing.T) {
			s, client := pipe(t, Config{Version: version, Memory: 24 << 30, Models: four,
				Faults: []Fault{{Kind: OutOfMemory, Probability: 1, Model: "qwen2.5:7b"}}})
			must(t, load(client, "llama3.2:3b", nil))
			_, err := say(client, &api.GenerateRequest{Model: "qwen2.5:7b", Prompt: "hello", Options: numCtx(4096)})
			wantStatus(t, err, 500, errRunnerDied.Error())
			wantLoaded(t, s, want...)
		})
	}
}

// Whatever comes, in whatever order, the device is never given more than it has, and all loads end.
func TestMemoryIsNeverOverCommitted(t *testing.T) {
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			s, client := pipe(t, Config{Memory: 12 << 30, LoadSpeed: 1 << 30, DecodeRate: 50, Slots: 1 + int(seed%3), Models: four})
			var calls sync.WaitGroup
			for range 40 {
				req := &api.GenerateRequest{
					Model: four[rnd.IntN(4)].Name, Prompt: material, Options: numCtx(2048 << rnd.IntN(3)), KeepAlive: keep(time.Duration(rnd.IntN(60)) * time.Second),
				}
				calls.Go(func() {
					if _, err := say(client, req); err != nil {
						t.Error(err)
					}
				})
				time.Sleep(time.Duration(rnd.IntN(3000)) * time.Millisecond)
				if free := s.Info().FreeBytes; free < 0 || free > 12<<30 {
					t.Fatalf("%d bytes are free of 12 GiB", free)
				}
			}
			calls.Wait()
		})
	}
}
