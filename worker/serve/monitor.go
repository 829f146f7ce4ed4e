package serve

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loopkeeper/loopkeeper/hwprobe"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
	"github.com/loopkeeper/loopkeeper/worker/calls/modes"
)

const (
	// askTimeout bounds what a report asks of Ollama, and how long it waits for newer numbers of the hardware: what hangs must
	// not silence the machine for so long that it counts as lost.
	askTimeout = 5 * time.Second
	// minLook is the least time between two looks: Ollama up to 0.17.4 reads its list of loaded models without a lock.
	minLook = 500 * time.Millisecond
)

// monitor is the one that reports the machine and its Ollama: every heartbeat, soon after a call moved a model, and when something
// happened to the hardware.
type monitor struct {
	o       Options
	calls   *registry
	learner *learner
	modes   *modes.Book
	machine *machine
	ask     chan struct{} // a wish to look soon; capacity one
	done    chan struct{} // closed when the monitor stops
	run     context.Context
	end     context.CancelFunc
	work    sync.WaitGroup
	drawn   graphics // of the one goroutine that looks

	mu      sync.Mutex
	report  *workerv1.NodeReport // nil before the first look
	changed chan struct{}        // closed when there is a newer report
}

func newMonitor(ctx context.Context, o Options, calls *registry, modes *modes.Book) *monitor {
	m := &monitor{o: o, calls: calls, ask: make(chan struct{}, 1), done: make(chan struct{}), changed: make(chan struct{}),
		learner: &learner{client: o.Ollama}, modes: modes, machine: newMachine(o.Prober, o.Log)}
	var cancel context.CancelFunc
	m.run, cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.end = sync.OnceFunc(func() { cancel(); close(m.done) })
	m.work.Go(func() { m.machine.watch(m.run) })
	m.report = m.look(ctx, m.machine.first)
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
		numbers := m.machine.newest
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		case <-m.machine.news:
		case <-m.ask:
			numbers = m.machine.fresh
		}
		report := m.look(ctx, numbers)
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

// refresh asks for a look soon, because something was moved.
func (m *monitor) refresh() {
	m.machine.use()
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

// look makes a report with the hardware as numbers give it. What cannot be asked now keeps its last value: an Ollama that is busy
// has not lost its models. What is free is newer than the list of loaded models wherever that is another one than before.
func (m *monitor) look(ctx context.Context, numbers func(context.Context) (hwprobe.Report, bool)) *workerv1.NodeReport {
	r := &workerv1.NodeReport{Slots: int32(m.o.Slots), HeartbeatSeconds: int32(m.o.Heartbeat / time.Second)}
	r.Running, r.Kept = m.calls.keys()
	if len(r.Running) > 0 {
		m.machine.use()
	}
	m.machine.rest()
	var asked sync.WaitGroup
	asked.Go(func() { _, _ = numbers(ctx) })
	m.askOllama(ctx, r)
	asked.Wait()
	if last := m.last(); last != nil && !r.Simulated && !slices.EqualFunc(last.GetLoaded(), r.GetLoaded(), sameLoaded) {
		_, _ = m.machine.fresh(ctx)
	}
	r.Time = timestamppb.Now()
	m.machine.tell(r)
	m.drawn.look(r)
	return r
}

func sameLoaded(a, b *workerv1.LoadedModel) bool {
	return a.GetDigest() == b.GetDigest() && a.GetContext() == b.GetContext() && a.GetVramBytes() == b.GetVramBytes()
}

// askOllama fills in what Ollama says. Models come last: reading their files' facts takes long when there are many new ones.
func (m *monitor) askOllama(ctx context.Context, r *workerv1.NodeReport) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	last := m.last()
	r.Ollama = &workerv1.Ollama{Url: m.o.Ollama.BaseURL()}
	r.Models, r.Loaded, r.Simulated = last.GetModels(), last.GetLoaded(), last.GetSimulated()
	if r.Simulated {
		r.Pools, r.Devices, r.Slots, r.Probed = last.GetPools(), last.GetDevices(), last.GetSlots(), last.GetProbed()
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
		r.Pools, r.Devices, r.Slots, r.Probed = nil, nil, int32(m.o.Slots), nil
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
	r.Slots, r.Devices, r.Probed = int32(s.Slots), nil, timestamppb.Now()
	if s.MemoryBytes == 0 {
		r.Pools = []*workerv1.Pool{{Id: hwprobe.HostPool, Kind: string(hwprobe.PoolOfHost), Source: "simulated"}}
		return nil
	}
	total, free := s.MemoryBytes, s.FreeBytes
	r.Pools = []*workerv1.Pool{{Id: "gpu:simulated", Kind: string(hwprobe.PoolOfDevice), TotalBytes: &total, FreeBytes: &free, Source: "simulated"}}
	r.Devices = []*workerv1.Device{{Name: "simulated GPU", Vendor: "simulated", PoolId: "gpu:simulated", State: string(hwprobe.StateOK)}}
	return nil
}
