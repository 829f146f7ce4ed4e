package serve

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	"github.com/loopkeeper/loopkeeper/hwprobe/probe"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

const (
	// askTimeout bounds what a report asks of Ollama and of the vendors' tools, each: one that hangs must not silence the
	// machine for so long that it counts as lost.
	askTimeout = 5 * time.Second
	// firstProbe is the bound on the first probe, which may have to start a driver.
	firstProbe = probe.DefaultTimeout
	// minLook is the least time between two looks: Ollama up to 0.17.4 reads its list of loaded models without a lock.
	minLook = 500 * time.Millisecond
)

// monitor is the one that looks at the machine and its Ollama: every heartbeat, and soon after a call moved a model.
type monitor struct {
	o       Options
	calls   *registry
	learner *learner
	ask     chan struct{} // a wish to look soon; capacity one
	done    chan struct{} // closed when the monitor stops
	run     context.Context
	end     context.CancelFunc
	work    sync.WaitGroup

	mu      sync.Mutex
	report  *workerv1.NodeReport // nil before the first look
	changed chan struct{}        // closed when there is a newer report
}

func newMonitor(ctx context.Context, o Options, calls *registry) *monitor {
	m := &monitor{o: o, calls: calls, ask: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{}),
		learner: &learner{client: o.Ollama}}
	var cancel context.CancelFunc
	m.run, cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.end = sync.OnceFunc(func() { cancel(); close(m.done) })
	m.report = m.look(ctx, firstProbe)
	m.work.Go(func() { m.loop(m.run) })
	return m
}

func (m *monitor) stop() {
	m.end()
	m.work.Wait()
}

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
		report := m.look(ctx, askTimeout)
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
func (m *monitor) look(ctx context.Context, patience time.Duration) *workerv1.NodeReport {
	r := &workerv1.NodeReport{Slots: int32(m.o.Slots), HeartbeatSeconds: int32(m.o.Heartbeat / time.Second)}
	r.Running, r.Kept = m.calls.keys()
	var found hwprobe.Report
	var asked sync.WaitGroup
	asked.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		found = m.o.Probe(ctx)
	})
	m.askOllama(ctx, r)
	asked.Wait()
	r.Time = timestamppb.Now()
	r.Host = &workerv1.Host{Hostname: found.Host.Hostname, Os: found.Host.OS, Cpu: found.Host.CPU, Cores: int32(found.Host.Cores)}
	if raw, err := json.Marshal(found); err == nil { // a report is plain values: it always marshals
		r.ProbeJson = raw
	}
	for _, w := range found.Warnings {
		r.Warnings = append(r.Warnings, &workerv1.Warning{Code: string(w.Code), Text: w.Message, Next: w.Next})
	}
	if !r.Simulated {
		hardware(found, r)
		if last := m.last(); !last.GetSimulated() {
			keepTotals(r, last)
		}
		override(r, m.o.Memory)
	}
	return r
}

// askOllama fills in what Ollama says. Models come last: reading their files' facts takes long when there are many new ones.
func (m *monitor) askOllama(ctx context.Context, r *workerv1.NodeReport) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	last := m.last()
	r.Ollama = &workerv1.Ollama{Url: m.o.Ollama.BaseURL()}
	r.Models, r.Loaded, r.Simulated = last.GetModels(), last.GetLoaded(), last.GetSimulated()
	if r.Simulated {
		r.Pools, r.Devices, r.Slots = last.GetPools(), last.GetDevices(), last.GetSlots()
	}
	err := m.askServer(ctx, r)
	if err == nil {
		err = m.listModels(ctx, r)
	}
	r.Ollama.Reachable = err == nil
	if err != nil {
		r.Ollama.Error = strings.ToValidUTF8(err.Error(), "\uFFFD")
	}
}

func (m *monitor) askServer(ctx context.Context, r *workerv1.NodeReport) error {
	server, err := m.o.Ollama.Server(ctx)
	if err != nil {
		return err
	}
	r.Ollama.Version, r.Simulated, r.Ollama.Since = server.Version, server.Simulated, timestamppb.Now()
	if was := m.last().GetOllama(); was.GetReachable() && was.GetVersion() == server.Version && was.GetSince() != nil {
		r.Ollama.Since = was.GetSince()
	}
	if r.Simulated {
		if err := m.simulatedPool(ctx, r); err != nil {
			return err
		}
	} else {
		r.Pools, r.Devices, r.Slots = nil, nil, int32(m.o.Slots)
	}
	loaded, err := m.o.Ollama.Loaded(ctx)
	if err != nil {
		return err
	}
	r.Loaded = nil
	for _, l := range loaded {
		r.Loaded = append(r.Loaded, loadedMessage(l))
	}
	return nil
}

func (m *monitor) last() *workerv1.NodeReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.report
}

// simulatedPool takes the memory that a stand-in pretends to have; the machine's own has nothing to do with it. One
// without a device computes in host memory, of which it does not tell how much there is.
func (m *monitor) simulatedPool(ctx context.Context, r *workerv1.NodeReport) error {
	s, err := m.o.Ollama.Simulation(ctx)
	if err != nil {
		return err
	}
	r.Slots, r.Devices = int32(s.Slots), nil
	if s.MemoryBytes == 0 {
		r.Pools = []*workerv1.Pool{{Id: hwprobe.HostPool, Kind: string(hwprobe.PoolOfHost), Source: "simulated"}}
		return nil
	}
	total, free := s.MemoryBytes, s.FreeBytes
	r.Pools = []*workerv1.Pool{{Id: "gpu:simulated", Kind: string(hwprobe.PoolOfDevice), TotalBytes: &total, FreeBytes: &free, Source: "simulated"}}
	r.Devices = []*workerv1.Device{{Name: "simulated GPU", Vendor: "simulated", PoolId: "gpu:simulated", State: string(hwprobe.StateOK)}}
	return nil
}
