package pull

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// Nodes gives connections to workers; a *fleet.Fleet is one.
type Nodes interface {
	Client(nodeID string) (workerv1.WorkerServiceClient, bool)
}

// Progress is how far a download is. A model has several files, whose sizes become known one after the other.
type Progress struct {
	Status           string  // as Ollama says it
	Completed, Total uint64  // bytes of the files known so far; 0: none yet
	Rate             float64 // bytes per second; 0: not known yet
}

// Puller makes the downloads. Make one with New.
type Puller struct {
	nodes  Nodes
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu    sync.Mutex
	jobs  map[job]*download
	rates map[string]float64 // of the last download that ended well, by node
}

// job names a download.
type job struct{ node, model string }

// download is one that is under way.
type download struct {
	cancel   context.CancelFunc
	done     chan struct{} // closed when it has ended; err holds then
	err      error
	watchers map[chan Progress]bool // each holds the newest; guarded, as is latest, by Puller.mu
	latest   Progress
}

// New returns a Puller that works until Stop.
func New(nodes Nodes) *Puller {
	p := &Puller{nodes: nodes, jobs: map[job]*download{}, rates: map[string]float64{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// Stop ends all downloads and returns when they are gone. Ollama keeps what it has, and goes on from there the next time.
func (p *Puller) Stop() {
	p.mu.Lock()
	p.cancel()
	p.mu.Unlock()
	p.work.Wait()
}

// Pull has a node download a model, or joins in when it does so already, and tells how far it is until it has ended. When ctx ends and
// nobody else watches, the download ends. Unavailable: the node is not connected.
func (p *Puller) Pull(ctx context.Context, node, model string, tell func(Progress)) error {
	j := job{node, model}
	d, news, err := p.join(j)
	if err != nil {
		return err
	}
	defer p.leave(j, d, news)
	for {
		select {
		case progress := <-news:
			tell(progress)
		case <-d.done:
			return d.err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *Puller) join(j job) (*download, chan Progress, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return nil, nil, apierr.New(apierr.Unavailable, "the coordinator is stopping").WithNext("start loopkeeper again")
	}
	d := p.jobs[j]
	if d == nil {
		client, ok := p.nodes.Client(j.node)
		if !ok {
			return nil, nil, apierr.New(apierr.Unavailable, "the machine is not connected").WithNext("loopkeeper nodes")
		}
		d = &download{done: make(chan struct{}), watchers: map[chan Progress]bool{}}
		var ctx context.Context
		ctx, d.cancel = context.WithCancel(p.ctx)
		p.jobs[j] = d
		p.work.Go(func() { p.run(ctx, j, d, client) })
	}
	news := make(chan Progress, 1)
	d.watchers[news] = true
	if d.latest.Status != "" {
		news <- d.latest
	}
	return d, news, nil
}

func (p *Puller) leave(j job, d *download, news chan Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(d.watchers, news)
	if len(d.watchers) == 0 {
		d.cancel()
		if p.jobs[j] == d { // whoever comes now begins another
			delete(p.jobs, j)
		}
	}
}

// run is one download.
func (p *Puller) run(ctx context.Context, j job, d *download, client workerv1.WorkerServiceClient) {
	began := time.Now()
	err := p.receive(ctx, j, d, client)
	p.mu.Lock()
	defer p.mu.Unlock()
	d.err = apierr.FromStatus(err)
	if took := time.Since(began); err == nil && took > time.Second && d.latest.Completed > 0 {
		p.rates[j.node] = float64(d.latest.Completed) / took.Seconds()
	}
	if p.jobs[j] == d {
		delete(p.jobs, j)
	}
	d.cancel()
	close(d.done)
}

func (p *Puller) receive(ctx context.Context, j job, d *download, client workerv1.WorkerServiceClient) error {
	stream, err := client.Pull(ctx, &workerv1.PullRequest{Name: j.model})
	if err != nil {
		return err
	}
	m := meter{began: time.Now()}
	for {
		msg, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.tell(d, m.add(msg, time.Now()))
	}
}

func (p *Puller) tell(d *download, progress Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d.latest = progress
	for news := range d.watchers {
		select {
		case <-news:
		default:
		}
		news <- progress // there is room: nobody else sends
	}
}

// UnderWay returns the downloads that a node makes now, by model.
func (p *Puller) UnderWay(node string) map[string]Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]Progress{}
	for j, d := range p.jobs {
		if j.node == node {
			out[j.model] = d.latest
		}
	}
	return out
}

// Rate is how fast a node's last download was, bytes per second; DefaultRate while none is known.
func (p *Puller) Rate(node string) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.rates[node]; r > 0 {
		return r
	}
	return DefaultRate
}

// meter adds up the files of a model and how fast they come.
type meter struct {
	began time.Time
	files []file
}

// What a worker says is bounded: a model has a handful of files, and no file has a pebibyte.
const (
	mostFiles = 1000
	mostBytes = 1 << 50
)

type file struct {
	status           string
	completed, total uint64
}

func (m *meter) add(msg *workerv1.PullResponse, now time.Time) Progress {
	if total := min(msg.GetTotalBytes(), mostBytes); total > 0 {
		f := file{msg.GetStatus(), min(msg.GetCompletedBytes(), total), total}
		if n := len(m.files); n > 0 && m.files[n-1].status == f.status {
			m.files[n-1] = f
		} else if n < mostFiles {
			m.files = append(m.files, f)
		}
	}
	out := Progress{Status: msg.GetStatus()}
	for _, f := range m.files {
		out.Completed += f.completed
		out.Total += f.total
	}
	if took := now.Sub(m.began); took > time.Second && out.Completed > 0 {
		out.Rate = float64(out.Completed) / took.Seconds()
	}
	return out
}
