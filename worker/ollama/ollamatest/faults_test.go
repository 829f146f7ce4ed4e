package ollamatest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ollama/ollama/api"
)

// The mix that the main job must survive.
var mixed = []Fault{
	{Kind: EmptyTurn, Probability: 0.20}, {Kind: TextForValue, Probability: 0.10},
	{Kind: StreamBroken, Probability: 0.05}, {Kind: HTTP500, Probability: 0.05},
}

const valueSchema = `{"type":"object","required":["summary"],"properties":{"summary":{"type":"string","minLength":5}}}`

// ask makes one call without a network and returns the body.
func ask(s *Server, item int) string {
	body, _ := json.Marshal(map[string]any{
		"model": "llama3.2:3b", "prompt": fmt.Sprintf("%s\nItem %d.", material, item), "format": json.RawMessage(valueSchema),
		"options": map[string]any{"num_ctx": 4096, "seed": 1},
	})
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/api/generate", bytes.NewReader(body)))
	return w.Body.String()
}

func TestFaultsHitTheirRates(t *testing.T) {
	const calls = 2000
	s := New(Config{Faults: mixed, Seed: 42})
	defer s.Close()
	for i := range calls {
		ask(s, i)
	}
	counts := s.Counts()
	for _, f := range mixed {
		mean := calls * f.Probability
		if got := float64(counts.Faults[f.Kind]); math.Abs(got-mean) > 4*math.Sqrt(mean*(1-f.Probability)) {
			t.Errorf("%s struck %g times of %d, want about %g", f.Kind, got, calls, mean)
		}
	}
	if counts.Received != calls || counts.Endpoints["generate"] != calls {
		t.Errorf("%+v", counts)
	}
	if want := calls - counts.Faults[StreamBroken] - counts.Faults[HTTP500]; counts.Succeeded != want {
		t.Errorf("%d whole answers, want %d", counts.Succeeded, want)
	}
}

// struck makes the calls, in the order given and some at a time, and returns the fault of each item and repetition.
func struck(seed uint64, order []int, atOnce int) map[string]FaultKind {
	s := New(Config{Faults: mixed, Seed: seed})
	defer s.Close()
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce) // bounds the calls under way
	for _, item := range order {
		wg.Go(func() {
			slots <- struct{}{}
			ask(s, item)
			<-slots
		})
	}
	wg.Wait()
	out := map[string]FaultKind{}
	for _, c := range s.Calls() {
		out[fmt.Sprint(c.Key, c.Repetition)] = c.Fault
	}
	return out
}

func TestFaultsDependOnSeedAndContentOnly(t *testing.T) {
	var order []int
	for i := range 150 {
		order = append(order, i, i) // each item twice
	}
	first := struck(7, order, 1)
	slices.Reverse(order)
	if again := struck(7, order, 8); !maps.Equal(first, again) {
		t.Error("another order of the calls had other faults")
	}
	if other := struck(8, order, 1); maps.Equal(first, other) {
		t.Error("another seed had the same faults")
	}
	same := 0
	for key, kind := range first {
		if kind != "" && strings.HasSuffix(key, "0") && first[strings.TrimSuffix(key, "0")+"1"] == kind {
			same++
		}
	}
	if struckFirst := 60; same > struckFirst/2 {
		t.Errorf("%d repetitions met the fault of the first try: repeating does not help", same)
	}
}

// What each fault looks like to Ollama's own client.
func TestFaultShapes(t *testing.T) {
	type outcome struct {
		text, thinking, reason string
		done                   bool
		err                    error
	}
	for kind, check := range map[FaultKind]func(o outcome) bool{
		EmptyTurn:       func(o outcome) bool { return o.done && o.reason == "stop" && strings.TrimSpace(o.text) == "" },
		ThinkingOnly:    func(o outcome) bool { return o.done && o.thinking != "" && o.text == "" },
		TextForValue:    func(o outcome) bool { return o.done && o.text != "" && !json.Valid([]byte(o.text)) },
		SchemaViolation: func(o outcome) bool { return json.Valid([]byte(o.text)) && !strings.Contains(o.text, "summary") },
		Truncated: func(o outcome) bool {
			return o.done && o.reason == "length" && o.text != "" && !json.Valid([]byte(o.text))
		},
		StreamBroken:    func(o outcome) bool { return o.err == nil && !o.done && o.text != "" },
		ConnectionReset: func(o outcome) bool { return !o.done && !errors.As(o.err, new(api.StatusError)) },
		HTTP500: func(o outcome) bool {
			var se api.StatusError
			return errors.As(o.err, &se) && se.StatusCode == 500
		},
		HTTP503: func(o outcome) bool {
			var se api.StatusError
			return errors.As(o.err, &se) && se.StatusCode == 503
		},
		OutOfMemory: func(o outcome) bool {
			var se api.StatusError
			return errors.As(o.err, &se) && se.StatusCode == 500 && strings.HasPrefix(se.ErrorMessage, "model runner has unexpectedly stopped")
		},
		Slow:     func(o outcome) bool { return json.Valid([]byte(o.text)) },
		Rejected: func(o outcome) bool { return json.Valid([]byte(o.text)) && strings.Contains(o.text, `"sent_back"`) },
	} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprint(kind, stream), func(t *testing.T) {
				c := Client(New(Config{Faults: []Fault{{Kind: kind, Probability: 1}}}).Start(t), nil)
				var o outcome
				o.err = c.Chat(t.Context(), &api.ChatRequest{
					Model: "llama3.2:3b", Stream: &stream, Options: numCtx(4096), Messages: []api.Message{{Role: "user", Content: material}},
					Format: json.RawMessage(`{"type":"object","required":["summary","verdict"],"properties":{"summary":{"type":"string"},"verdict":{"enum":["passed","sent_back"]}}}`),
				}, func(r api.ChatResponse) error {
					o.text += r.Message.Content
					o.thinking += r.Message.Thinking
					o.done, o.reason = r.Done, r.DoneReason
					return nil
				})
				if !check(o) {
					t.Errorf("%+v", o)
				}
			})
		}
	}
}

func TestFaultsCanBeAimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := pipe(t, Config{Faults: []Fault{
			{Kind: HTTP500, Probability: 1, Contains: "Item 7."},
			{Kind: HTTP503, Probability: 1, Model: "qwen3:8b"},
			{Kind: Slow, Probability: 1, Limit: 1, Delay: time.Minute},
		}})
		call := func(model, prompt string) (time.Duration, error) {
			begun := time.Now()
			_, err := say(c, &api.GenerateRequest{Model: model, Prompt: prompt, Options: numCtx(4096)})
			return time.Since(begun), err
		}
		if _, err := call("llama3.2:3b", "Item 7. Do it."); err == nil {
			t.Error("the aimed fault missed")
		}
		if _, err := call("qwen3:8b", "Item 8."); err == nil {
			t.Error("the model's fault missed")
		}
		for i, want := range []time.Duration{time.Minute, 0} {
			if d, err := call("llama3.2:3b", "Item 8."); err != nil || d != want {
				t.Errorf("call %d took %v, %v; want %v", i, d, err, want)
			}
		}
		s.SetFaults()
		if _, err := call("llama3.2:3b", "Item 7. Do it."); err != nil {
			t.Errorf("after the faults were taken away: %v", err)
		}
	})
}

func TestControl(t *testing.T) {
	s := New(Config{Name: "a", Seed: 3})
	base := s.Start(t)
	c := Client(base, nil)
	post := func(path, body string) (int, string) {
		t.Helper()
		resp, err := http.Post(base+path, "application/json", strings.NewReader(body))
		must(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		return resp.StatusCode, string(text)
	}
	if status, text := post("/control/faults", `{"faults":[{"kind":"http_500","probability":1}]}`); status != 204 {
		t.Fatalf("%d %s", status, text)
	}
	_, err := say(c, &api.GenerateRequest{Model: "llama3.2:3b", Prompt: "Look at item 12.", Options: numCtx(4096)})
	if err == nil {
		t.Error("the posted fault did not strike")
	}
	if status, text := post("/control/faults", `{"faults":[{"kind":"http_501","probability":1}]}`); status != 400 || !strings.Contains(text, `faults[0].kind: \"http_501\" is unknown`) {
		t.Errorf("%d %s", status, text)
	}
	resp, err := http.Get(base + "/control/calls")
	must(t, err)
	defer resp.Body.Close()
	var log struct {
		Calls  []Call
		Counts Counts
	}
	must(t, json.NewDecoder(resp.Body).Decode(&log))
	if len(log.Calls) != 1 || log.Calls[0].Prompt != "Look at item 12." || log.Calls[0].Status != 500 || log.Calls[0].Fault != HTTP500 || log.Counts.Received != 1 {
		t.Errorf("%+v", log)
	}
	must(t, load(c, "llama3.2:3b", nil))
	if status, _ := post("/control/reset", ""); status != 204 || len(s.Calls()) != 0 || len(s.Loaded()) != 0 {
		t.Errorf("after a reset: status %d, %d calls, loaded %v", status, len(s.Calls()), s.Loaded())
	}
}

func TestFaultsOfTheMachine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := pipe(t, Config{DecodeRate: 8, Slowdown: 8})
		generate := func() api.GenerateResponse {
			t.Helper()
			last, err := say(c, &api.GenerateRequest{Model: "llama3.2:3b", Prompt: material, Options: numCtx(4096)})
			must(t, err)
			return last
		}
		size := func() (size, vram int64) {
			t.Helper()
			ps, err := c.ListRunning(t.Context())
			must(t, err)
			return ps.Models[0].Size, ps.Models[0].SizeVRAM
		}
		well := generate()
		want, _ := size()
		s.SetFaults(Fault{Kind: GPULost, Probability: 1})
		if lost := generate(); lost.EvalDuration.Round(time.Millisecond) != 8*well.EvalDuration.Round(time.Millisecond) {
			t.Errorf("without the GPU %v, with it %v", lost.EvalDuration, well.EvalDuration)
		}
		if size, vram := size(); size != want || vram != size {
			t.Errorf("the lost GPU shows in /api/ps: %d of %d", vram, size)
		}
		s.SetFaults(Fault{Kind: PSMisreport, Probability: 1})
		if got, _ := size(); got > want/7 || got < want/8 {
			t.Errorf("%d bytes are reported as %d", want, got)
		}
		s.SetFaults(Fault{Kind: StuckUnload, Probability: 1, Limit: 1})
		for _, loaded := range []int{1, 0} {
			last, err := say(c, &api.GenerateRequest{Model: "llama3.2:3b", KeepAlive: keep(0)})
			must(t, err)
			if last.DoneReason != "unload" || len(s.Loaded()) != loaded {
				t.Errorf("%s, loaded %v", last.DoneReason, s.Loaded())
			}
		}
	})
}

// unload asks for it and does not look.
func unload(ctx context.Context, c *api.Client) error {
	return c.Generate(ctx, &api.GenerateRequest{Model: "llama3.2:3b", KeepAlive: keep(0)}, func(api.GenerateResponse) error { return nil })
}

// ollama#11812: after a spill the next model runs on the processor only, and /api/ps says so.
func TestALoadThatEndsOnTheProcessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := pipe(t, Config{Faults: []Fault{{Kind: CPULoad, Probability: 1, Limit: 1}}})
		for _, onDevice := range []bool{false, true} {
			must(t, load(c, "llama3.2:3b", nil))
			ps, err := c.ListRunning(t.Context())
			must(t, err)
			if m := ps.Models[0]; (m.SizeVRAM == m.Size) != onDevice || m.Size == 0 {
				t.Errorf("%d of %d on the device", m.SizeVRAM, m.Size)
			}
			must(t, unload(t.Context(), c))
		}
	})
}

// What a request says of keep_alive is ignored: the server's own holds.
func TestAKeepAliveThatIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := pipe(t, Config{KeepAlive: time.Hour, Faults: []Fault{{Kind: KeepAliveLost, Probability: 1}}})
		must(t, load(c, "llama3.2:3b", keep(time.Minute)))
		time.Sleep(59 * time.Minute)
		wantLoaded(t, s, "llama3.2:3b")
		time.Sleep(2 * time.Minute)
		wantLoaded(t, s)
		must(t, load(c, "llama3.2:3b", nil))
		must(t, unload(t.Context(), c)) // an unload is one all the same
		wantLoaded(t, s)
	})
}

func TestAnUnloadThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := pipe(t, Config{Faults: []Fault{{Kind: HungUnload, Probability: 1, Limit: 1}}})
		must(t, load(c, "llama3.2:3b", nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		if err := unload(ctx, c); err == nil || time.Since(began) != time.Minute {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		wantLoaded(t, s, "llama3.2:3b")
		must(t, unload(t.Context(), c))
		wantLoaded(t, s)
	})
}

// gpustack#6044: memory that other programs have is free in the books only. A model that fitted alone spills beside a game.
func TestOtherProgramsTakeMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := pipe(t, Config{Memory: 8 << 30})
		s.Occupy(7 << 30)
		if free := s.Info().FreeBytes; free != 1<<30 {
			t.Errorf("%d bytes are free", free)
		}
		must(t, load(c, "llama3.2:3b", nil))
		ps, err := c.ListRunning(t.Context())
		must(t, err)
		if m := ps.Models[0]; m.SizeVRAM >= m.Size || m.SizeVRAM > 1<<30 {
			t.Errorf("%d of %d on a device with 1 GiB", m.SizeVRAM, m.Size)
		}
	})
}
