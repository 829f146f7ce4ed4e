package serve

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/ollama"
)

// askTimeout bounds what a report asks of Ollama: a server that hangs must not hide the machine.
const askTimeout = 5 * time.Second

// monitor is the one that looks at the machine and its Ollama: every heartbeat, and soon after a call moved a model.
type monitor struct {
	o     Options
	calls *registry
	ask   chan struct{} // a wish to look soon; capacity one
	done  chan struct{} // closed when the monitor stops
	end   context.CancelFunc
	work  sync.WaitGroup

	mu      sync.Mutex
	report  *workerv1.NodeReport
	changed chan struct{} // closed when there is a newer report
}

func newMonitor(ctx context.Context, o Options, calls *registry) *monitor {
	m := &monitor{o: o, calls: calls, ask: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{})}
	m.report = m.look(ctx)
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.end = sync.OnceFunc(func() { cancel(); close(m.done) })
	m.work.Go(func() { m.loop(run) })
	return m
}

func (m *monitor) stop() {
	m.end()
	m.work.Wait()
}

// minLook is the least time between two looks: Ollama up to 0.17.4 reads its list of loaded models without a lock.
const minLook = 500 * time.Millisecond

func (m *monitor) loop(ctx context.Context) {
	beat := time.NewTicker(m.o.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		case <-m.ask:
		}
		report := m.look(ctx)
		if ctx.Err() != nil {
			return
		}
		m.mu.Lock()
		m.report = report
		close(m.changed)
		m.changed = make(chan struct{})
		m.mu.Unlock()
		pause := time.NewTimer(minLook)
		select {
		case <-ctx.Done():
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

// refresh asks for a look soon.
func (m *monitor) refresh() {
	select {
	case m.ask <- struct{}{}:
	default: // one is wished for already
	}
}

// latest returns the newest report and a channel that is closed when there is a newer one.
func (m *monitor) latest() (*workerv1.NodeReport, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report, m.changed
}

// look makes a report. What cannot be asked now keeps its last value: an Ollama that is busy has not lost its models.
func (m *monitor) look(ctx context.Context) *workerv1.NodeReport {
	probe := m.o.Probe(ctx)
	r := &workerv1.NodeReport{Time: timestamppb.Now(), Slots: int32(m.o.Slots), HeartbeatSeconds: int32(m.o.Heartbeat / time.Second)}
	r.Running, r.Kept = m.calls.keys()
	r.Host = &workerv1.Host{Hostname: probe.Host.Hostname, Os: probe.Host.OS, Cpu: probe.Host.CPU, Cores: int32(probe.Host.Cores)}
	m.askOllama(ctx, r)
	if raw, err := json.Marshal(probe); err == nil { // a report is plain values: it always marshals
		r.ProbeJson = raw
	}
	for _, w := range probe.Warnings {
		r.Warnings = append(r.Warnings, &workerv1.Warning{Code: string(w.Code), Text: w.Message, Next: w.Next})
	}
	if !r.Simulated {
		hardware(probe, r)
		m.override(r)
	}
	return r
}

func (m *monitor) askOllama(ctx context.Context, r *workerv1.NodeReport) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	last := m.last()
	r.Ollama = &workerv1.Ollama{Url: m.o.Ollama.BaseURL()}
	r.Models, r.Loaded, r.Simulated = last.GetModels(), last.GetLoaded(), last.GetSimulated()
	server, err := m.o.Ollama.Server(ctx)
	if err == nil {
		r.Ollama.Version, r.Simulated = server.Version, server.Simulated
		r.Models, err = m.listModels(ctx)
	}
	if err == nil {
		var loaded []ollama.Loaded
		if loaded, err = m.o.Ollama.Loaded(ctx); err == nil {
			r.Loaded = nil
			for _, l := range loaded {
				r.Loaded = append(r.Loaded, loadedMessage(l))
			}
		}
	}
	if err == nil && r.Simulated {
		err = m.simulatedPool(ctx, r)
	}
	if err != nil {
		r.Ollama.Error = err.Error()
		if r.Pools == nil && r.Simulated {
			r.Pools = last.GetPools()
		}
		return
	}
	r.Ollama.Reachable = true
}

func (m *monitor) last() *workerv1.NodeReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report
}

func (m *monitor) listModels(ctx context.Context) ([]*workerv1.Model, error) {
	list, err := m.o.Ollama.Models(ctx)
	if err != nil {
		return m.last().GetModels(), err
	}
	var out []*workerv1.Model
	for _, model := range list {
		e := &workerv1.Model{Name: model.Name, Digest: model.Digest, FileBytes: uint64(model.Size), ParameterSize: model.ParameterSize, Quantization: model.Quantisation}
		if f, err := m.o.Ollama.Facts(ctx, model); err == nil { // without facts the shape stays unknown
			e.Capabilities = f.Capabilities
			e.Embedding = slices.Contains(f.Capabilities, "embedding") && !slices.Contains(f.Capabilities, "completion")
			e.Shape = shape(f)
		}
		out = append(out, e)
	}
	return out, nil
}

// simulatedPool takes the memory that a stand-in pretends to have; the machine's own has nothing to do with it.
func (m *monitor) simulatedPool(ctx context.Context, r *workerv1.NodeReport) error {
	s, err := m.o.Ollama.Simulation(ctx)
	if err != nil {
		return err
	}
	total, free := s.MemoryBytes, s.FreeBytes
	r.Slots = int32(s.Slots)
	r.Pools = []*workerv1.Pool{{Id: "gpu:simulated", Kind: string(hwprobe.PoolOfDevice), TotalBytes: &total, FreeBytes: &free, Source: "simulated"}}
	r.Devices = []*workerv1.Device{{Name: "simulated GPU", Vendor: "simulated", PoolId: "gpu:simulated", State: string(hwprobe.StateOK)}}
	return nil
}

// override replaces the probed total of the pool that models load into by what the operator says.
func (m *monitor) override(r *workerv1.NodeReport) {
	if m.o.Memory == 0 {
		return
	}
	target := r.Pools[0]
	for _, p := range r.Pools {
		if p.GetKind() != string(hwprobe.PoolOfHost) {
			target = p
			break
		}
	}
	if total := target.GetTotalBytes(); target.FreeBytes != nil && total > m.o.Memory {
		free := target.GetFreeBytes() - min(target.GetFreeBytes(), total-m.o.Memory)
		target.FreeBytes = &free
	}
	total := m.o.Memory
	target.TotalBytes, target.Source = &total, "configured"
}
