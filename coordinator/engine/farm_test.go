package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/run/panel"
	"github.com/loopkeeper/loopkeeper/scheduler"
)

// farm stands in for fleet, dispatch and the workers behind them. Like real workers it outlives the engine: a call goes on
// when the engine dies, and its result is kept for who asks again with the same key.
type farm struct {
	mu      sync.Mutex
	sink    Sink
	nodes   []*machine
	changed chan struct{}
	calls   map[string]*call
	sends   []Attempt
	renewed []string
	answer  func(a Attempt) Result          // what a call comes to; nil is a value that names its item
	takes   func(a Attempt) time.Duration   // nil is some time around a second
	deaf    bool                            // workers take no notice of a cancel
	breaks  func(node string) time.Duration // when not 0, the call of a load breaks off after so long; the machine goes on loading
	late    time.Duration                   // between the report that shows a model and the end of its load
	ends    func(node string, m *Move)      // what the end of a load says; nil leaves it as it is
	sticks  func(node string) (bool, error) // whether an unload leaves the model in memory, and what its call says then
	wg      sync.WaitGroup
}

type machine struct {
	scheduler.Node
	loads int // how often something was loaded there
	asked int // how often a load was asked for
}

type call struct {
	attempt Attempt
	result  *Result // set when it has ended
	cancel  chan struct{}
	ended   bool
}

const gib = 1 << 30

var shape = scheduler.Shape{Architecture: "llama", WeightBytes: 4 * gib, Layers: 32, EmbeddingLength: 4096, Heads: 32, KVHeads: []int{8},
	FeedForward: 14336, VocabSize: 32000, ContextLength: 8192}

func model(name string) scheduler.Model {
	return scheduler.Model{Name: name, Digest: "sha-" + name, FileBytes: 4 * gib, Shape: &shape}
}

// newFarm has n machines, each with memory for one of the models "small:8b" and "judge:8b" but not for both.
func newFarm(n int) *farm {
	f := &farm{changed: make(chan struct{}, 1), calls: map[string]*call{}}
	for i := range n {
		f.nodes = append(f.nodes, &machine{Node: scheduler.Node{
			ID: fmt.Sprintf("n%d", i+1), Name: fmt.Sprintf("box-%d", i+1), State: scheduler.NodeUp, OllamaVersion: "0.17.4", Slots: 4,
			Pools:  []scheduler.Pool{{ID: "host", Kind: scheduler.PoolHost, Total: scheduler.Bytes{N: 13 * gib, Known: true}, Free: scheduler.Bytes{N: 12 * gib, Known: true}}},
			Models: []scheduler.Model{model("judge:8b"), model("small:8b")}, Simulated: true,
		}})
	}
	return f
}

func (f *farm) Nodes() []scheduler.Node {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []scheduler.Node
	for _, m := range f.nodes {
		n := m.Node
		n.Loaded, n.Pools = slices.Clone(n.Loaded), slices.Clone(n.Pools)
		out = append(out, n)
	}
	return out
}

func (f *farm) Changed() <-chan struct{} { return f.changed }

func (f *farm) change() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

func (f *farm) node(id string) *machine {
	i := slices.IndexFunc(f.nodes, func(m *machine) bool { return m.ID == id })
	return f.nodes[i]
}

func (f *farm) Send(a Attempt) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sends = append(f.sends, a)
	c := f.calls[a.Key]
	if c == nil {
		c = &call{attempt: a, cancel: make(chan struct{})}
		f.calls[a.Key] = c
		f.wg.Go(func() { f.work(c) })
		return
	}
	if c.result != nil {
		r, sink := *c.result, f.sink
		f.wg.Go(func() { sink.Finished(r) })
	}
}

// work is what a worker does with a call.
func (f *farm) work(c *call) {
	a := c.attempt
	f.toSink(func(s Sink) { s.Progressed(Progress{Key: a.Key, Phase: "writing", Tokens: 1, TokensPerSecond: 30}) })
	d := time.Duration(500+hashOf(a.Key)%1000) * time.Millisecond
	if f.takes != nil {
		d = f.takes(a)
	}
	r := Result{Key: a.Key, Failure: &run.Failure{Kind: run.KindCancelled, Message: "cancelled", Advice: Never}}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		if r = value(a); f.answer != nil {
			r = f.answer(a)
		}
		r.Key = a.Key
	case <-c.cancel:
	}
	f.mu.Lock()
	up := f.node(a.Node).State == scheduler.NodeUp
	if up {
		c.result = &r
	} else {
		delete(f.calls, a.Key) // it died with its machine
	}
	f.mu.Unlock()
	if up {
		f.toSink(func(s Sink) { s.Finished(r) })
	}
}

func (f *farm) toSink(do func(Sink)) {
	f.mu.Lock()
	s := f.sink
	f.mu.Unlock()
	if s != nil {
		do(s)
	}
}

func (f *farm) Cancel(_, key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.calls[key]; c != nil && !c.ended && !f.deaf {
		c.ended = true
		close(c.cancel)
	}
}

func (f *farm) Load(node string, d scheduler.Decision) {
	f.mu.Lock()
	f.node(node).asked++
	f.mu.Unlock()
	var broken time.Duration
	if f.breaks != nil {
		broken = f.breaks(node)
	}
	if broken > 0 {
		f.wg.Go(func() {
			time.Sleep(broken)
			f.toSink(func(s Sink) { s.Moved(node, Move{Decision: d, Err: errors.New("the connection broke")}) })
		})
	}
	f.wg.Go(func() {
		time.Sleep(4 * time.Second)
		f.mu.Lock()
		n := f.node(node)
		if slices.ContainsFunc(n.Loaded, func(l scheduler.Loaded) bool { return l.Digest == d.Digest }) {
			f.mu.Unlock() // an earlier load did it
			f.toSink(func(s Sink) { s.Moved(node, Move{Decision: d}) })
			return
		}
		n.loads++
		n.Loaded = append(n.Loaded, scheduler.Loaded{Digest: d.Digest, Name: d.Model, Context: d.Context, SizeBytes: d.Need, Since: time.Now()})
		n.Pools[0].Free.N -= min(d.Need, n.Pools[0].Free.N)
		f.mu.Unlock()
		if broken == 0 {
			if f.late > 0 {
				f.change()
				time.Sleep(f.late)
			}
			m := Move{Decision: d, Took: 4 * time.Second, Size: d.Need}
			if f.ends != nil {
				f.ends(node, &m)
			}
			f.toSink(func(s Sink) { s.Moved(node, m) })
		}
		f.change()
	})
}

func (f *farm) Renew(node string, d scheduler.Decision) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed = append(f.renewed, node+" "+d.Model)
}

// Answering is never known of a farm's machines.
func (f *farm) Answering(string) time.Time { return time.Time{} }

func (f *farm) Unload(node string, d scheduler.Decision) {
	f.wg.Go(func() {
		time.Sleep(time.Second)
		if f.sticks != nil {
			if sticks, err := f.sticks(node); sticks {
				f.toSink(func(s Sink) { s.Moved(node, Move{Decision: d, Err: err}) })
				return
			}
		}
		f.mu.Lock()
		n := f.node(node)
		n.Loaded = slices.DeleteFunc(n.Loaded, func(l scheduler.Loaded) bool {
			if l.Digest == d.Digest {
				n.Pools[0].Free.N += l.SizeBytes
			}
			return l.Digest == d.Digest
		})
		f.mu.Unlock()
		f.toSink(func(s Sink) { s.Moved(node, Move{Decision: d}) })
		f.change()
	})
}

// lose takes a machine away, as the fleet would see it.
func (f *farm) lose(id string) {
	f.mu.Lock()
	n := f.node(id)
	n.State, n.Loaded = scheduler.NodeLost, nil
	n.Pools[0].Free.N = 12 * gib
	f.mu.Unlock()
	f.toSink(func(s Sink) { s.Lost(id) })
	f.change()
}

// back brings a machine back, empty.
func (f *farm) back(id string) {
	f.mu.Lock()
	f.node(id).State = scheduler.NodeUp
	f.mu.Unlock()
	f.change()
}

// put has somebody else load a model on a machine, or with a size of 0 takes it out of memory.
func (f *farm) put(node, name string, bytes uint64) {
	f.mu.Lock()
	n := f.node(node)
	n.Loaded = slices.DeleteFunc(n.Loaded, func(l scheduler.Loaded) bool {
		if l.Name == name {
			n.Pools[0].Free.N += l.SizeBytes
		}
		return l.Name == name
	})
	if bytes > 0 {
		n.Loaded = append(n.Loaded, scheduler.Loaded{Digest: "sha-" + name, Name: name, Context: 4096, SizeBytes: bytes})
		n.Pools[0].Free.N -= bytes
	}
	f.mu.Unlock()
	f.change()
}

// loaded names what a machine holds.
func (f *farm) loaded(node string) (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.node(node).Loaded {
		names = append(names, l.Name)
	}
	return names
}

// running lists the calls that have no end.
func (f *farm) running() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var keys []string
	for k, c := range f.calls {
		if c.result == nil {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func (f *farm) sent() []Attempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sends)
}

// value is an answer that depends on the item alone, so that every undisturbed run has the same.
func value(a Attempt) Result {
	v, _ := json.Marshal(map[string]string{"of": string(a.Body)})
	if a.Kind == CallEvaluate {
		v = judgement(a, "met")
	}
	return Result{Value: v, Prompt: "the prompt of " + string(a.Body), Raw: string(v),
		Report: Report{Model: a.Model, Digest: a.Digest, PromptTokens: 20, OutputTokens: 10, OutputNanos: 3e8, TotalNanos: 5e8, Simulated: true}}
}

// judgement answers every criterion of an attempt alike, with a line that shows it.
func judgement(a Attempt, said string) json.RawMessage {
	var asked struct{ Criteria []panel.Criterion }
	_ = json.Unmarshal(a.Request, &asked)
	var j panel.Judgement
	for _, c := range asked.Criteria {
		j.Answers = append(j.Answers, panel.Answer{Criterion: c.Text, Said: said, Counted: said, Quotes: []panel.Quote{{Text: "its words", In: "subject", Line: 1}}})
	}
	raw, _ := json.Marshal(j)
	return raw
}

func fails(a Attempt, kind string, advice Advice) Result {
	r := value(a)
	r.Value, r.Raw, r.Failure = nil, "", &Failure{Kind: kind, Message: "it was " + kind, Advice: advice}
	return r
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64() >> 7
}

// faulty fails the given shares of all attempts, chosen by the attempt's name alone.
func faulty(a Attempt) Result {
	switch n := hashOf(fmt.Sprint(a.Step, "/", a.Item, "/", a.Number)) % 100; {
	case n < 20:
		return fails(a, "empty_turn", Changed)
	case n < 30:
		return fails(a, "text_instead_of_structure", Changed)
	case n < 35:
		return fails(a, "stream_broken", Again)
	case n < 40:
		return fails(a, "server_error", OtherNode)
	default:
		return value(a)
	}
}

func scheduler70(s *scheduler.Shape) scheduler.Model {
	return scheduler.Model{Name: "huge:70b", Digest: "sha-huge", FileBytes: s.WeightBytes, Shape: s}
}
