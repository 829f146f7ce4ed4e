package pull

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// machine is a worker whose downloads say what the test sends; "fails" fails at once.
type machine struct {
	workerv1.UnimplementedWorkerServiceServer
	begun chan string
	says  chan *workerv1.PullResponse // closed: it has the model
	ended chan error                  // why the caller's side ended a download
}

func (m *machine) Pull(r *workerv1.PullRequest, stream workerv1.WorkerService_PullServer) error {
	if r.GetName() == "fails" {
		return apierr.ToStatus(apierr.New(apierr.NotFound, "pull fails: no such model").WithNext("check the name"))
	}
	m.begun <- r.GetName()
	for {
		select {
		case say, more := <-m.says:
			if !more {
				return nil
			}
			if err := stream.Send(say); err != nil {
				return err
			}
		case <-stream.Context().Done():
			m.ended <- stream.Context().Err()
			return stream.Context().Err()
		}
	}
}

// farm connects to one machine, "den"; no other is there.
type farm struct{ client workerv1.WorkerServiceClient }

func (f farm) Client(id string) (workerv1.WorkerServiceClient, bool) { return f.client, id == "den" }

func rig(t *testing.T) (*machine, *Puller) {
	t.Helper()
	m := &machine{begun: make(chan string, 1), says: make(chan *workerv1.PullResponse), ended: make(chan error, 1)}
	l := bufconn.Listen(1 << 16)
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	workerv1.RegisterWorkerServiceServer(server, m)
	go server.Serve(l)
	conn, err := grpc.NewClient("passthrough:///x", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	p := New(farm{workerv1.NewWorkerServiceClient(conn)})
	t.Cleanup(func() {
		p.Stop()
		conn.Close()
		server.Stop()
	})
	return m, p
}

// watch pulls and gives what it is told, and how it ended.
func watch(ctx context.Context, p *Puller, model string) (told chan Progress, ended chan error) {
	told, ended = make(chan Progress, 1), make(chan error, 1)
	go func() {
		ended <- p.Pull(ctx, "den", model, func(progress Progress) {
			select {
			case told <- progress:
			case <-ctx.Done():
			}
		})
	}()
	return told, ended
}

func TestWhoeverAsksForTheSameDownloadJoinsIt(t *testing.T) {
	m, p := rig(t)
	first, leave := context.WithCancel(t.Context())
	told, ended := watch(first, p, "a:1b")
	<-m.begun
	m.says <- &workerv1.PullResponse{Status: "pulling manifest"}
	<-told
	m.says <- &workerv1.PullResponse{Status: "pulling 111", CompletedBytes: 10, TotalBytes: 100}
	if got := <-told; got.Completed != 10 || got.Total != 100 {
		t.Errorf("told %+v", got)
	}
	also, alsoEnded := watch(t.Context(), p, "a:1b")
	if got := <-also; got.Completed != 10 {
		t.Errorf("who joins is told %+v", got)
	}
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	m.says <- &workerv1.PullResponse{Status: "pulling 222", CompletedBytes: 5, TotalBytes: 50} // it goes on for who is left
	if got := <-also; got.Completed != 15 || got.Total != 150 || p.UnderWay("den")["a:1b"].Total != 150 {
		t.Errorf("two files are %+v, under way %v", got, p.UnderWay("den"))
	}
	close(m.says)
	if err := <-alsoEnded; err != nil || len(p.UnderWay("den")) != 0 {
		t.Errorf("ended with %v, under way %v", err, p.UnderWay("den"))
	}
	select {
	case model := <-m.begun:
		t.Errorf("a second download of %s was begun", model)
	case err := <-m.ended:
		t.Errorf("the download was ended: %v", err)
	default:
	}
}

func TestADownloadThatNobodyWatchesEnds(t *testing.T) {
	m, p := rig(t)
	ctx, leave := context.WithCancel(t.Context())
	_, ended := watch(ctx, p, "a:1b")
	<-m.begun
	leave()
	<-ended
	if err := <-m.ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, again := watch(t.Context(), p, "a:1b")
	<-m.begun // it is begun anew
	close(m.says)
	if err := <-again; err != nil {
		t.Error(err)
	}
}

func TestAFailureKeepsItsCodeAndAdvice(t *testing.T) {
	_, p := rig(t)
	err := p.Pull(t.Context(), "den", "fails", func(Progress) {})
	if e := apierr.As(err); e.Code != apierr.NotFound || len(e.Next) != 1 {
		t.Errorf("got %v, %v", err, e.Next)
	}
	if err := p.Pull(t.Context(), "attic", "a:1b", func(Progress) {}); apierr.CodeOf(err) != apierr.Unavailable {
		t.Errorf("of a machine that is not there: %v", err)
	}
}

func TestRateIsOfAllFilesTogether(t *testing.T) {
	began := time.Unix(0, 0)
	m := meter{began: began}
	m.add(&workerv1.PullResponse{Status: "pulling 1", CompletedBytes: 100, TotalBytes: 100}, began.Add(time.Second/2))
	got := m.add(&workerv1.PullResponse{Status: "pulling 2", CompletedBytes: 20, TotalBytes: 60}, began.Add(2*time.Second))
	if got.Completed != 120 || got.Total != 160 || got.Rate != 60 {
		t.Errorf("got %+v", got)
	}
	if got := m.add(&workerv1.PullResponse{Status: "verifying sha256 digest"}, began.Add(3*time.Second)); got.Completed != 120 || got.Status != "verifying sha256 digest" {
		t.Errorf("got %+v", got)
	}
}

// A worker that says what cannot be costs nobody memory, and its sums stay below what they are of.
func TestProgressThatMakesNoSenseIsBounded(t *testing.T) {
	m, now := meter{began: time.Unix(0, 0)}, time.Unix(9, 0)
	for i := range 5000 {
		m.add(&workerv1.PullResponse{Status: fmt.Sprint("pulling ", i), CompletedBytes: math.MaxUint64, TotalBytes: math.MaxUint64}, now)
	}
	if got := m.add(&workerv1.PullResponse{Status: "done"}, now); len(m.files) != 1000 || got.Completed != got.Total || got.Total != 1000<<50 {
		t.Errorf("%d files, %+v", len(m.files), got)
	}
}
