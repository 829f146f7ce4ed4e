package serve

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

func TestLoadAndUnload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{LoadLatency: 3 * time.Second})
		digest := ""
		for _, m := range r.server.Report().GetModels() {
			if m.GetName() == "qwen3:8b" {
				digest = m.GetDigest()
			}
		}
		l, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: &workerv1.ModelSpec{Name: "qwen3:8b", Digest: digest, Context: 8192}})
		if err != nil {
			t.Fatal(err)
		}
		if l.GetSpilled() || l.GetLoaded().GetDigest() != digest || l.GetLoaded().GetContext() != 8192 || l.GetLoadNanos() < int64(3*time.Second) {
			t.Errorf("%v", l)
		}
		if got := r.ollama.Loaded(); len(got) != 1 {
			t.Errorf("loaded %q", got)
		}
		for range 2 { // unloading what is not loaded is no error
			if _, err := r.client.Unload(t.Context(), &workerv1.UnloadRequest{Name: "qwen3:8b"}); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.ollama.Loaded(); len(got) != 0 {
			t.Errorf("loaded %q", got)
		}
	})
}

func TestLoadSaysThatPartOfItSpilled(t *testing.T) {
	r := newRig(t, ollamatest.Config{Memory: 4 << 30})
	l, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: &workerv1.ModelSpec{Name: "qwen3:8b", Context: 4096}})
	if err != nil || !l.GetSpilled() {
		t.Errorf("5 GB in 4 GB: %v %v", l, err)
	}
	r = newRig(t, ollamatest.Config{CPUOnly: true})
	if l, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: &workerv1.ModelSpec{Name: "qwen3:8b", Context: 4096}}); err != nil || l.GetSpilled() {
		t.Errorf("without an accelerator nothing spills: %v %v", l, err)
	}
}

func TestLoadErrors(t *testing.T) {
	r := newRig(t, ollamatest.Config{Memory: 1 << 30, HostMemory: 1 << 30})
	load := func(name, digest string) *apierr.Error {
		_, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: &workerv1.ModelSpec{Name: name, Digest: digest, Context: 4096}})
		return apierr.As(apierr.FromStatus(err))
	}
	if e := load("nope:1b", ""); e == nil || e.Code != apierr.NotFound || e.Next[0] != "ollama pull nope:1b" {
		t.Errorf("missing: %+v", e)
	}
	if e := load("qwen3:8b", strings.Repeat("0", 64)); e == nil || e.Code != apierr.NotFound || !strings.Contains(e.Message, "digest") || e.Next[0] != "ollama pull qwen3:8b" {
		t.Errorf("another digest: %+v", e)
	}
	if e := load("qwen3:8b", ""); e == nil || e.Code != apierr.CannotFit {
		t.Errorf("out of memory: %+v", e)
	}
	r.line.down.Store(true)
	if e := load("qwen3:8b", ""); e == nil || e.Code != apierr.Unavailable {
		t.Errorf("down: %+v", e)
	}
}

func TestLoadThatHangsLetsOthersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{})
		r.line.hung.Store(true)
		first := make(chan error, 1)
		go func() {
			_, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: &workerv1.ModelSpec{Name: "qwen3:8b"}})
			first <- err
		}()
		time.Sleep(time.Minute)
		second := make(chan error, 1)
		go func() {
			_, err := r.client.Unload(t.Context(), &workerv1.UnloadRequest{Name: "qwen3:8b"})
			second <- err
		}()
		if err := <-first; apierr.CodeOf(apierr.FromStatus(err)) != apierr.Unavailable {
			t.Errorf("%v", err)
		}
		if err := <-second; apierr.CodeOf(apierr.FromStatus(err)) != apierr.Unavailable {
			t.Errorf("%v", err)
		}
	})
}

func TestPull(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	pull := func(name string) ([]*workerv1.PullResponse, error) {
		stream, err := r.client.Pull(t.Context(), &workerv1.PullRequest{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		var got []*workerv1.PullResponse
		for {
			m, err := stream.Recv()
			if err != nil {
				return got, err
			}
			got = append(got, m)
		}
	}
	got, _ := pull("llama3.1:8b")
	if len(got) < 3 || got[len(got)-1].GetStatus() != "success" {
		t.Errorf("%v", got)
	}
	_, err := pull("nope:1b")
	if e := apierr.As(apierr.FromStatus(err)); e == nil || e.Code != apierr.NotFound || strings.Count(e.Message, "nope:1b") != 1 || !strings.HasPrefix(e.Message, "pull nope:1b: ") {
		t.Errorf("%v", err)
	}
}

func TestPulledModelIsReportedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{})
		before := len(r.server.Report().GetModels())
		stream, err := r.client.Pull(t.Context(), &workerv1.PullRequest{Name: "llama3.1:8b"})
		for err == nil {
			_, err = stream.Recv()
		}
		time.Sleep(minLook)
		if got := len(r.server.Report().GetModels()); got != before+1 {
			t.Errorf("%d models, %d before", got, before)
		}
	})
}
