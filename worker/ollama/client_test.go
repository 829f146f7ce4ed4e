package ollama

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

func start(t *testing.T, cfg ollamatest.Config) (*ollamatest.Server, *Client) {
	t.Helper()
	s := ollamatest.New(cfg)
	return s, client(t, s.Start(t))
}

func client(t *testing.T, url string) *Client {
	t.Helper()
	c, err := New(Options{BaseURL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// answering is a server that gives every request the same answer.
func answering(t *testing.T, status int, body string) *Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return client(t, s.URL)
}

func TestAddresses(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:11434", "ftp://host", "http://", "http://[::1"} {
		if _, err := New(Options{BaseURL: bad}); err == nil {
			t.Errorf("%q was taken for an address", bad)
		}
	}
}

func TestServerSaysWhetherItIsSimulated(t *testing.T) {
	_, c := start(t, ollamatest.Config{Version: "0.17.4"})
	if s, err := c.Server(t.Context()); err != nil || s != (Server{Version: "0.17.4", Simulated: true}) {
		t.Errorf("%+v %v", s, err)
	}
	if s, err := answering(t, 200, `{"version":"0.30.1"}`).Server(t.Context()); err != nil || s != (Server{Version: "0.30.1"}) {
		t.Errorf("%+v %v", s, err)
	}
}

func TestModelsLeaveOutRemoteOnes(t *testing.T) {
	c := answering(t, 200, `{"models":[
		{"name":"qwen3:8b","digest":"d1","size":5200000000,"details":{"family":"qwen3","parameter_size":"8.2B","quantization_level":"Q4_K_M"}},
		{"name":"gpt-oss:120b-cloud","digest":"d2","remote_model":"gpt-oss:120b","remote_host":"https://ollama.com:443"}]}`)
	models, err := c.Models(t.Context())
	want := []Model{{Name: "qwen3:8b", Digest: "d1", Size: 5200000000, Family: "qwen3", ParameterSize: "8.2B", Quantisation: "Q4_K_M"}}
	if err != nil || !slices.Equal(models, want) {
		t.Errorf("%+v %v", models, err)
	}
	if _, err := c.Resolve(t.Context(), "gpt-oss:120b-cloud"); KindOf(err) != ModelMissing {
		t.Errorf("a remote model: %v", err)
	}
}

func TestNames(t *testing.T) {
	for given, want := range map[string]string{
		"llama3": "llama3:latest", "llama3:8b": "llama3:8b", "me/llama3": "me/llama3:latest", "hf.co/a/B-GGUF:Q4": "hf.co/a/B-GGUF:Q4",
	} {
		if got := Name(given); got != want {
			t.Errorf("%s is %s, want %s", given, got, want)
		}
	}
}

func TestLoadAndUnload(t *testing.T) {
	s, c := start(t, ollamatest.Config{Memory: 24 << 30})
	for _, name := range []string{"qwen3:8b", "nomic-embed-text"} {
		r, err := c.Load(t.Context(), name, 2048)
		if err != nil || r.Loaded.Context != 2048 || r.Loaded.Size == 0 || r.Loaded.SizeVRAM != r.Loaded.Size || r.Loaded.Digest == "" {
			t.Fatalf("load %s: %+v %v", name, r, err)
		}
		if left := time.Until(r.Loaded.ExpiresAt); left < DefaultKeepAlive-time.Minute || left > DefaultKeepAlive {
			t.Errorf("%s is kept for %s", name, left)
		}
	}
	if loaded, err := c.Loaded(t.Context()); err != nil || len(loaded) != 2 {
		t.Errorf("%+v %v", loaded, err)
	}
	for _, name := range []string{"qwen3:8b", "nomic-embed-text", "nomic-embed-text"} { // the third time it is not loaded
		if err := c.Unload(t.Context(), name, time.Minute); err != nil {
			t.Errorf("unload %s: %v", name, err)
		}
	}
	if still := s.Loaded(); len(still) != 0 {
		t.Errorf("still in memory: %v", still)
	}
	if _, err := c.Load(t.Context(), "none", 2048); KindOf(err) != ModelMissing {
		t.Errorf("load a model that is not there: %v", err)
	}
}

// What is renewed stays, and what nobody renews goes by itself: when we died, the card is free soon after.
func TestAModelStaysWhileItIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ollamatest.New(ollamatest.Config{KeepAlive: -1})
		base, web := s.StartPipe(t)
		c, err := New(Options{BaseURL: base, Transport: web.Transport})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"llama3.2:3b", "nomic-embed-text"} {
			if _, err := c.Load(t.Context(), name, 2048); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				time.Sleep(DefaultKeepAlive - time.Minute)
				if there, err := c.Renew(t.Context(), name, 2048); err != nil || !there {
					t.Fatalf("renew %s: %v %v", name, there, err)
				}
			}
			time.Sleep(DefaultKeepAlive + time.Second)
			if still := s.Loaded(); len(still) != 0 {
				t.Errorf("nobody renewed it, and it stays: %q", still)
			}
		}
		loads := s.Loads()
		if there, err := c.Renew(t.Context(), "llama3.2:3b", 2048); err != nil || there || s.Loads() != loads {
			t.Errorf("a renewal brought it back: %v %v, %d loads", there, err, s.Loads()-loads)
		}
		if _, err := c.Load(t.Context(), "llama3.2:3b", 2048); err != nil {
			t.Fatal(err)
		}
		if there, err := c.Renew(t.Context(), "llama3.2:3b", 4096); err != nil || there || s.Loads() != loads+1 {
			t.Errorf("a renewal loaded it with another context: %v %v", there, err)
		}
	})
}

// From 0.30 on a request whose shift differs from the load's loads the model again (research on ollama#16031); a load, a
// renewal and the calls of both forms have to say the same.
func TestALoadIsNotRepeatedByTheCallsThatItIsFor(t *testing.T) {
	for _, version := range []string{"0.17.4", "0.31.0"} {
		s, c := start(t, ollamatest.Config{Version: version})
		const model = "llama3.2:3b"
		if _, err := c.Load(t.Context(), model, 2048); err != nil {
			t.Fatal(err)
		}
		request := Request{Model: model, Prompt: "Say yes.", Sampling: Sampling{NumCtx: 2048, NumPredict: 4}}
		_, generate := c.Generate(t.Context(), request, nil)
		_, chat := c.Chat(t.Context(), request, nil)
		there, renew := c.Renew(t.Context(), model, 2048)
		if generate != nil || chat != nil || renew != nil || !there {
			t.Fatalf("%s: %v, %v, %v %v", version, generate, chat, there, renew)
		}
		if s.Loads() != 1 {
			t.Errorf("%s: %d loads, want the one", version, s.Loads())
		}
	}
}

func TestUnloadWaitsWithinABound(t *testing.T) {
	for name, c := range map[string]struct {
		wait time.Duration
		kind Kind
	}{"long enough": {time.Hour, ""}, "not long enough": {time.Second, Busy}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				base, web := ollamatest.New(ollamatest.Config{DecodeRate: 1}).StartPipe(t)
				c2, err := New(Options{BaseURL: base, Transport: web.Transport})
				if err != nil {
					t.Fatal(err)
				}
				first := make(chan struct{}, 1) // one mark, so that the generation never waits
				done := make(chan error, 1)
				go func() {
					_, err := c2.Generate(t.Context(), Request{Model: "llama3.2:3b", Prompt: "Say a few words about pumps.", Sampling: Sampling{NumPredict: 30}}, func(Chunk) {
						select {
						case first <- struct{}{}:
						default:
						}
					})
					done <- err
				}()
				<-first
				if err := c2.Unload(t.Context(), "llama3.2:3b", c.wait); KindOf(err) != c.kind || (err == nil) != (c.kind == "") {
					t.Errorf("unload while busy: %v, want kind %q", err, c.kind)
				}
				if err := <-done; err != nil {
					t.Errorf("the running answer was broken: %v", err)
				}
			})
		})
	}
}

func TestPull(t *testing.T) {
	_, c := start(t, ollamatest.Config{})
	var last Progress
	if err := c.Pull(t.Context(), "qwen2.5:7b", func(p Progress) { last = p }); err != nil || last.Status != "success" {
		t.Errorf("%+v %v", last, err)
	}
	if _, err := c.Resolve(t.Context(), "qwen2.5:7b"); err != nil {
		t.Errorf("pulled, but: %v", err)
	}
	// Both texts are Ollama's own; the first is what its registry client says to an unknown name.
	if err := answering(t, 200, `{"status":"pulling manifest"}`+"\n"+`{"error":"pull model manifest: file does not exist"}`).Pull(t.Context(), "x", nil); KindOf(err) != ModelMissing {
		t.Errorf("a name that nobody has: %v", err)
	}
	if err := answering(t, 200, `{"status":"pulling manifest"}`).Pull(t.Context(), "x", nil); KindOf(err) != StreamBroken {
		t.Errorf("a download that just ends: %v", err)
	}
}

func TestStreamThatEndsWithoutDone(t *testing.T) {
	c := answering(t, 200, `{"response":"half an ans"}`+"\n")
	r, err := c.Generate(t.Context(), Request{Model: "m", Prompt: "p"}, nil)
	if KindOf(err) != StreamBroken || r.Text != "half an ans" {
		t.Errorf("%+v %v", r, err)
	}
}

func TestContextsAreNoErrorsOfTheServer(t *testing.T) {
	_, c := start(t, ollamatest.Config{Faults: []ollamatest.Fault{{Kind: ollamatest.Hang, Probability: 1}}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Chat(ctx, Request{Model: "llama3.2:3b", Prompt: "p"}, nil)
	if !errors.Is(err, context.DeadlineExceeded) || KindOf(err) != "" {
		t.Errorf("%v", err)
	}
}

// The texts are those of Ollama 0.17.4's source, of the drivers it passes on, and of llama-server for 0.30 and newer.
func TestErrorKinds(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		kind   Kind
	}{
		{404, `{"error":"model 'x' not found"}`, ModelMissing},
		{404, `{"error":"model \"x\" not found, try pulling it first"}`, ModelMissing},
		{400, `{"error":"the input length exceeds the context length"}`, InputTooLong},
		{500, `{"error":"request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it"}`, InputTooLong},
		{400, `{"error":"\"m\" does not support thinking"}`, BadRequest},
		{401, `{"error":"unauthorized"}`, BadRequest},
		{503, `{"error":"server busy, please try again.  maximum pending requests exceeded"}`, Busy},
		{500, `{"error":"model requires more system memory (20.1 GiB) than is available (7.2 GiB)"}`, OutOfMemory},
		{500, `{"error":"llama runner process has terminated: cudaMalloc failed: out of memory"}`, OutOfMemory},
		{500, `{"error":"insufficient memory - required allocations: {}"}`, OutOfMemory},
		{500, `{"error":"model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, check ollama server logs for details"}`, ServerError},
		{500, `{"error":"invalid JSON schema in format"}`, ServerError},
		{502, `<html>Bad Gateway</html>`, ServerError},
		{200, `{"error":"an error was encountered while running the model: unexpected EOF"}`, ServerError},
		{200, `{"error":"CUDA error: out of memory"}`, OutOfMemory},
	} {
		_, err := answering(t, c.status, c.body).Generate(t.Context(), Request{Model: "m", Prompt: "p"}, nil)
		var e *Error
		if !errors.As(err, &e) || e.Kind != c.kind || e.Message == "" || (c.status != 200 && e.Status != c.status) {
			t.Errorf("%d %s: %+v, want %s", c.status, c.body, err, c.kind)
		}
	}
	if _, err := client(t, "http://127.0.0.1:1").Server(t.Context()); KindOf(err) != Unreachable {
		t.Errorf("nobody there: %v", err)
	}
}

// The text of a runner that died names memory only as one reason of several. It is the reason while a model is loaded,
// but not in the middle of an answer, which a grammar can end so as well.
func TestRunnerThatDiesWhileItLoadsIsOutOfMemory(t *testing.T) {
	died := `{"error":"model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, check ollama server logs for details"}`
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/tags":
			io.WriteString(w, `{"models":[{"name":"m:latest","model":"m:latest","digest":"d1","size":5}]}`)
		case "/api/show":
			io.WriteString(w, `{"capabilities":["completion"],"model_info":{}}`)
		default:
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, died)
		}
	}))
	t.Cleanup(s.Close)
	c := client(t, s.URL)
	if _, err := c.Load(t.Context(), "m", 4096); KindOf(err) != OutOfMemory {
		t.Errorf("a load: %s %v", KindOf(err), err)
	}
	_, err := c.Generate(t.Context(), Request{Model: "m", Prompt: "p"}, nil)
	var e *Error
	if !errors.As(err, &e) || e.Kind != ServerError || !e.Resources {
		t.Errorf("an answer: %+v", err)
	}
}
