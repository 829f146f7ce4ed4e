package fleet

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/discovery"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// notes collects what a fleet tells of.
type notes struct{ texts []string }

func (n *notes) take(o *Options) {
	o.Note = func(id, text string) { n.texts = append(n.texts, id+": "+text) }
}

// One worker that says it has 20 million slots once made every decision last seconds.
func TestAReportIsBounded(t *testing.T) {
	huge := uint64(math.MaxUint64)
	shape := func() *workerv1.Shape {
		return &workerv1.Shape{Architecture: "llama", WeightBytes: 1 << 30, Layers: 16, EmbeddingLength: 2048, Heads: 32}
	}
	for name, c := range map[string]struct {
		change func(r *workerv1.NodeReport)
		says   string
		holds  func(n scheduler.Node) bool
	}{
		"slots":          {func(r *workerv1.NodeReport) { r.Slots = 20_000_000 }, "slots is 20000000, which is taken for 1024", func(n scheduler.Node) bool { return n.Slots == 1024 }},
		"negative slots": {func(r *workerv1.NodeReport) { r.Slots = -7 }, "slots is -7, which is taken for 0", func(n scheduler.Node) bool { return n.Slots == 0 }},
		"total": {func(r *workerv1.NodeReport) { r.Pools[0].TotalBytes = &huge }, "pools[0].total_bytes is 18446744073709551615 bytes, which no machine has",
			func(n scheduler.Node) bool { return !n.Pools[0].Total.Known }},
		"reserve": {func(r *workerv1.NodeReport) { r.Pools[0].ReserveBytes = huge }, "pools[0].reserve_bytes is 18446744073709551615 bytes, which no machine has",
			func(n scheduler.Node) bool { return n.Pools[0].Reserve == 1<<50 }},
		"models": {func(r *workerv1.NodeReport) { r.Models = slices.Repeat(r.Models, 5000) }, "models has 5000 entries, of which 2048 are used",
			func(n scheduler.Node) bool { return len(n.Models) == 2048 }},
		"devices": {func(r *workerv1.NodeReport) { r.Devices = slices.Repeat([]*workerv1.Device{{}}, 100_000) }, "devices has 100000 entries, of which 64 are used",
			func(n scheduler.Node) bool { return len(n.Devices) == 64 }},
		"name": {func(r *workerv1.NodeReport) { r.Models[0].Name = strings.Repeat("ü", 1<<20) }, "models[0].name is a text of 2097152 bytes, of which 4096 are kept",
			func(n scheduler.Node) bool { return len(n.Models[0].Name) == 4096 }},
		"a shape's layers": {func(r *workerv1.NodeReport) { s := shape(); s.Layers, r.Models[0].Shape = math.MaxInt32, s }, "models[0].shape.layers is 2147483647, which is taken for 512",
			func(n scheduler.Node) bool { return n.Models[0].Shape == nil }},
		"a shape's list": {func(r *workerv1.NodeReport) {
			r.Models[0].Shape = shape()
			r.Models[0].Shape.LayerBytes = make([]uint64, 1<<20)
		}, "models[0].shape.layer_bytes has 1048576 entries, of which 512 are used", func(n scheduler.Node) bool { return n.Models[0].Shape == nil }},
		"a context": {func(r *workerv1.NodeReport) {
			r.Loaded = []*workerv1.LoadedModel{{Name: "x", Digest: "x", Context: -1}}
		}, "loaded[0].context is -1, which is taken for 0",
			func(n scheduler.Node) bool { return n.Loaded[0].Context == 0 }},
		"a temperature": {func(r *workerv1.NodeReport) { x := math.NaN(); r.Devices = []*workerv1.Device{{PowerWatts: &x}} }, "devices[0].power_watts is NaN",
			func(n scheduler.Node) bool { return len(n.Devices) == 1 }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, h *house) {
				var told notes
				m := newMachine("den")
				h.start("den:1", m)
				f := h.fleet(static("den:1"), told.take)
				settle(time.Second)
				wrong := report("qwen3:8b")
				c.change(wrong)
				m.say(wrong)
				settle(10 * time.Second) // several reports
				if want := []string{"den: " + c.says}; !slices.Equal(told.texts, want) {
					t.Errorf("told %q, want %q", told.texts, want)
				}
				if n := f.Nodes()[0]; !c.holds(n) || n.State != scheduler.NodeUp {
					t.Errorf("the node is %+v", n)
				}
				nodes, _ := f.View()
				if w := nodes[0].Report.GetWarnings(); len(w) != 1 || w[0].GetCode() != "report_bounded" || !strings.Contains(w[0].GetText(), c.says) || w[0].GetNext() == "" {
					t.Errorf("the warnings are %v", w)
				}
			})
		})
	}
}

// A worker that sends other nonsense every time is not told of for ever.
func TestNonsenseIsToldOfForAWhileOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		var told notes
		m := newMachine("den")
		m.report.Slots = -1 // in the description, too
		h.start("den:1", m)
		f := h.fleet(static("den:1"), told.take)
		for i := range 100 {
			r := report(slices.Repeat([]string{"a:1b"}, i+1)...)
			r.Models[i].FileBytes = math.MaxUint64
			m.say(r)
			settle(3 * time.Second)
		}
		if len(told.texts) != mostTold || told.texts[0] != "den: slots is -1, which is taken for 0" {
			t.Errorf("told %d times, first %q", len(told.texts), fmt.Sprint(told.texts[:1]))
		}
		if n := f.Nodes()[0]; n.Models[99].FileBytes != 1<<50 {
			t.Errorf("a file of %d bytes", n.Models[99].FileBytes)
		}
	})
}

// Where the owner says how much there is and nothing measures what is free of it, all but what Ollama holds is.
func TestATotalThatTheOwnerGaveNeedsNoMeasurement(t *testing.T) {
	total, free := uint64(16<<30), uint64(3<<30)
	pool := func(id, kind, source string, free *uint64) *workerv1.Pool {
		return &workerv1.Pool{Id: id, Kind: kind, Source: source, TotalBytes: &total, FreeBytes: free}
	}
	loaded := func(size, vram uint64) *workerv1.LoadedModel {
		return &workerv1.LoadedModel{Name: "x", Digest: "x", SizeBytes: size << 30, VramBytes: vram << 30}
	}
	unknown := scheduler.Bytes{}
	gib := func(n uint64) scheduler.Bytes { return scheduler.Bytes{N: n << 30, Known: true} }
	for name, c := range map[string]struct {
		pools  []*workerv1.Pool
		loaded []*workerv1.LoadedModel
		want   []scheduler.Bytes
	}{
		"nothing is loaded":       {[]*workerv1.Pool{pool("gpu", "device", "override", nil)}, nil, []scheduler.Bytes{gib(16)}},
		"a model is":              {[]*workerv1.Pool{pool("gpu", "device", "override", nil)}, []*workerv1.LoadedModel{loaded(6, 5)}, []scheduler.Bytes{gib(11)}},
		"more than there is":      {[]*workerv1.Pool{pool("gpu", "device", "override", nil)}, []*workerv1.LoadedModel{loaded(60, 50)}, []scheduler.Bytes{gib(0)}},
		"the host's part":         {[]*workerv1.Pool{pool("host", "host", "override", nil)}, []*workerv1.LoadedModel{loaded(6, 0)}, []scheduler.Bytes{gib(10)}},
		"two cards":               {[]*workerv1.Pool{pool("a", "device", "override", nil), pool("b", "device", "override", nil)}, []*workerv1.LoadedModel{loaded(6, 6), loaded(5, 5)}, []scheduler.Bytes{gib(10), gib(11)}},
		"it is measured":          {[]*workerv1.Pool{pool("gpu", "device", "override", &free)}, []*workerv1.LoadedModel{loaded(6, 5)}, []scheduler.Bytes{gib(3)}},
		"nobody vouches for more": {[]*workerv1.Pool{pool("gpu", "device", "nvml", nil)}, nil, []scheduler.Bytes{unknown}},
	} {
		n := node{report: &workerv1.NodeReport{Pools: c.pools, Loaded: c.loaded}}
		var got []scheduler.Bytes
		for _, p := range n.snapshot().Pools {
			got = append(got, p.Free)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: free %v, want %v", name, got, c.want)
		}
	}
}

// Whoever is on the network may announce whatever he likes.
func TestAnnouncedAddressesAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, h *house) {
		var all []string
		for i := range 5000 {
			all = append(all, fmt.Sprint("host:", i))
		}
		f := h.fleet(func(o *Options) {
			o.Find = func(context.Context) (Found, error) {
				return Found{Records: []discovery.Record{{NodeID: "x", Fleet: "home", Addrs: all}}}, nil
			}
		})
		settle(100 * time.Millisecond)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.links) != mostLinks {
			t.Errorf("%d addresses are tried", len(f.links))
		}
	})
}
