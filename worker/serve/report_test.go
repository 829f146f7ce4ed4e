package serve

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama/ollamatest"
)

func TestDescribeSaysWhatTheStandInPretendsToBe(t *testing.T) {
	r := newRig(t, ollamatest.Config{Memory: 12 << 30, Slots: 3})
	d, err := r.client.Describe(t.Context(), &workerv1.DescribeRequest{Fleet: "home"})
	if err != nil {
		t.Fatal(err)
	}
	p := d.GetReport().GetPools()
	if d.GetNodeId() != "den" || d.GetName() != "Den" || d.GetVersion() != "0.1.0" || !d.GetSimulated() || d.GetReport().GetSlots() != 3 ||
		len(p) != 1 || p[0].GetTotalBytes() != 12<<30 || p[0].GetFreeBytes() != 12<<30 || p[0].GetKind() != "device" {
		t.Errorf("%v", d)
	}
	i := slices.IndexFunc(d.GetReport().GetModels(), func(m *workerv1.Model) bool { return m.GetName() == "qwen3:8b" })
	if i < 0 {
		t.Fatalf("models %v", d.GetReport().GetModels())
	}
	// From the published config.json of Qwen3-8B: 36 layers, 8 KV heads of length 128.
	s := d.GetReport().GetModels()[i].GetShape()
	if s.GetLayers() != 36 || len(s.GetKvHeads()) == 0 || s.GetKvHeads()[0] != 8 || s.GetKeyLength() != 128 || s.GetWeightBytes() < 3<<30 || len(s.GetLayerBytes()) != 36 {
		t.Errorf("shape %v", s)
	}
	for _, m := range d.GetReport().GetModels() {
		if m.GetEmbedding() != strings.HasPrefix(m.GetName(), "nomic-embed") {
			t.Errorf("%s: embedding %v", m.GetName(), m.GetEmbedding())
		}
	}
}

// A look gives Ollama five seconds; one answer about a large vocabulary can take longer than that on a busy machine. It
// must be heard to its end, and meanwhile the node is up.
func TestFactsThatTakeLongerThanALook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{}, func(_ *Options, l *line) { l.slow.Store(8) })
		first := r.server.Report()
		if !first.GetOllama().GetReachable() || len(first.GetModels()) == 0 || first.GetModels()[0].GetShape() != nil {
			t.Errorf("at once: %v", first)
		}
		time.Sleep(time.Duration(8*len(first.GetModels()))*time.Second + 10*time.Second)
		for _, m := range r.server.Report().GetModels() {
			if m.GetShape() == nil {
				t.Errorf("the shape of %s never came", m.GetName())
			}
		}
	})
}

func TestDescribeRefusesAnotherFleet(t *testing.T) {
	r := newRig(t, ollamatest.Config{})
	_, err := r.client.Describe(t.Context(), &workerv1.DescribeRequest{Fleet: "lab"})
	e := apierr.As(apierr.FromStatus(err))
	if e.Code != apierr.Conflict || !strings.Contains(e.Message, `"home"`) || !strings.Contains(e.Message, `"lab"`) || len(e.Next) == 0 {
		t.Errorf("%+v", e)
	}
}

func TestStandInWithoutDeviceHasUnknownHostMemory(t *testing.T) {
	r := newRig(t, ollamatest.Config{CPUOnly: true})
	p := r.server.Report().GetPools()
	if len(p) != 1 || p[0].GetKind() != "host" || p[0].TotalBytes != nil {
		t.Errorf("unknown is not zero: %v", p)
	}
}

func TestWatchReportsHeartbeatsAndChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, ollamatest.Config{})
		stream, err := r.client.Watch(t.Context(), &workerv1.WatchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		next := func() (*workerv1.NodeReport, time.Duration) {
			m, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			return m.GetReport(), time.Since(start)
		}
		if _, at := next(); at != 0 {
			t.Errorf("the first report came after %s", at)
		}
		if _, at := next(); at != 3*time.Second {
			t.Errorf("the heartbeat came after %s", at)
		}
		time.Sleep(time.Second)
		if _, err := r.client.Load(t.Context(), &workerv1.LoadRequest{Model: &workerv1.ModelSpec{Name: "qwen3:8b", Context: 4096}}); err != nil {
			t.Fatal(err)
		}
		rep, at := next()
		if at != 4*time.Second || len(rep.GetLoaded()) != 1 || rep.GetLoaded()[0].GetContext() != 4096 ||
			rep.GetPools()[0].GetFreeBytes()+rep.GetLoaded()[0].GetVramBytes() != rep.GetPools()[0].GetTotalBytes() {
			t.Errorf("after the load, at %s: %v", at, rep)
		}
	})
}

func TestOllamaThatGoesAwayKeepsItsModels(t *testing.T) {
	for name, broken := range map[string]func(*line, bool){
		"refuses": func(l *line, on bool) { l.down.Store(on) },
		"hangs":   func(l *line, on bool) { l.hung.Store(on) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, ollamatest.Config{Slots: 2})
				before := r.server.Report()
				broken(r.line, true)
				time.Sleep(9 * time.Second) // a heartbeat, and what asking may take
				rep := r.server.Report()
				if rep.GetOllama().GetReachable() || rep.GetOllama().GetError() == "" || rep.GetOllama().GetVersion() != "" {
					t.Errorf("it is still reachable: %v", rep.GetOllama())
				}
				if len(rep.GetModels()) != len(before.GetModels()) || !rep.GetSimulated() || rep.GetSlots() != 2 || len(rep.GetPools()) != 1 || len(rep.GetDevices()) != 1 {
					t.Errorf("what was known is gone: %v", rep)
				}
				if age := time.Since(rep.GetTime().AsTime()); age > 9*time.Second || !rep.GetTime().AsTime().After(before.GetTime().AsTime()) {
					t.Errorf("the report is %s old", age)
				}
				broken(r.line, false)
				time.Sleep(9 * time.Second)
				if rep := r.server.Report(); !rep.GetOllama().GetReachable() || rep.GetOllama().GetError() != "" {
					t.Errorf("it did not come back: %v", rep.GetOllama())
				}
			})
		})
	}
}
