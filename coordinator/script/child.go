package script

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// ChildOptions say how a child host starts its children.
type ChildOptions struct {
	Command []string // program and arguments that lead to ServeChild, such as this binary with its hidden subcommand
	Limits  Limits
}

// NewChildHost returns a host that runs each script in a process of its own, so that a script that eats memory or loops
// inside a native call ends that process only. A child has nothing of this process's environment, and ends with its session or its
// parent.
func NewChildHost(o ChildOptions) *ChildHost {
	o.Limits = o.Limits.withDefaults()
	return &ChildHost{o: o, spare: make(chan *childSession, 1)}
}

// ChildHost is a Host with a process for each script.
type ChildHost struct {
	o       ChildOptions
	spare   chan *childSession // that no script has taken yet
	warming sync.WaitGroup
}

// Warm starts a process ahead for the next script, whose start takes longer than anything that a coordinator does before it
// needs one. It returns at once. Who warms a host closes it.
func (h *ChildHost) Warm() {
	h.warming.Go(func() {
		s, err := h.spawn()
		if err != nil {
			return // the script that needs one will say so
		}
		select {
		case h.spare <- s:
		default:
			s.stop()
		}
	})
}

// Close ends what Warm has started and no script has taken.
func (h *ChildHost) Close() {
	h.warming.Wait()
	select {
	case s := <-h.spare:
		s.stop()
	default:
	}
}

// Describe implements Host.
func (h *ChildHost) Describe(ctx context.Context, p Program) (Interface, error) {
	s, err := h.child()
	if err != nil {
		return Interface{}, err
	}
	defer s.stop()
	a, err := s.ask(ctx, question{Version: protocolVersion, Limits: &h.o.Limits, Describe: &p})
	switch {
	case err != nil:
		return Interface{}, named(err, p)
	case a.Failure != nil:
		return Interface{}, a.Failure
	case a.Interface == nil:
		return Interface{}, errNoAnswer
	}
	return *a.Interface, nil
}

// Start implements Host.
func (h *ChildHost) Start(ctx context.Context, start Start) (Session, Yield, error) {
	s, err := h.child()
	if err != nil {
		return nil, Yield{}, err
	}
	s.program = start.Program
	y, err := s.step(ctx, question{Version: protocolVersion, Limits: &h.o.Limits, Start: &start})
	if err != nil {
		s.stop()
		return nil, Yield{}, err
	}
	return s, y, nil
}

// child is the one that was started ahead, or a new one.
func (h *ChildHost) child() (*childSession, error) {
	select {
	case s := <-h.spare:
		return s, nil
	default:
		return h.spawn()
	}
}

// childEnv is all that a child is told: where it stands, so that a Date does not depend on where the coordinator does, and that it may
// collect late, already while it starts: a script's heap is small, and a replay makes garbage.
var childEnv = []string{"TZ=UTC", "GOGC=400"}

func (h *ChildHost) spawn() (*childSession, error) {
	if len(h.o.Command) == 0 {
		return nil, errors.New("start a script: the host has no command")
	}
	s := &childSession{limits: h.o.Limits, cmd: exec.Command(h.o.Command[0], h.o.Command[1:]...)}
	s.cmd.Env = childEnv
	s.cmd.Stderr = &s.stderr
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a script: %w", err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a script: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a script: %w", err)
	}
	s.in, s.out = in, bufio.NewReader(out)
	return s, nil
}

// childSession is a script in a child process.
type childSession struct {
	limits  Limits
	program Program
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	stderr  head
	late    atomic.Bool // the child was killed because it took too long
	closed  atomic.Bool
	stopped sync.Once
}

func (s *childSession) Deliver(ctx context.Context, d Delivery) (Yield, error) {
	d = bounded(d)
	return s.step(ctx, question{Delivery: &d})
}

func (s *childSession) DeliverAll(ctx context.Context, ds []Delivery) ([]Yield, error) {
	var yields []Yield
	for part := range parts(ds) {
		bounds := make([]Delivery, len(part))
		for i, d := range part {
			bounds[i] = bounded(d)
		}
		a, err := s.ask(ctx, question{Replay: bounds})
		var failure *Failure
		switch {
		case errors.As(err, &failure):
			return append(yields, s.ended(failure)), nil
		case err != nil:
			return yields, err
		}
		yields = append(yields, a.Yields...)
		if len(a.Yields) < len(part) || a.Yields[len(part)-1].End != nil {
			break
		}
	}
	return yields, nil
}

// Close ends the child process and waits until it is gone.
func (s *childSession) Close() error {
	s.stop()
	return nil
}

// stop kills the child, which has nothing worth saving, and waits for it.
func (s *childSession) stop() {
	s.closed.Store(true)
	s.kill()
	s.wait()
}

func (s *childSession) kill() { _ = s.cmd.Process.Kill() } // an error means that it has ended already

func (s *childSession) wait() {
	s.stopped.Do(func() {
		_ = s.in.Close()
		_ = s.cmd.Wait() // its exit code is read from ProcessState
	})
}

func errOtherVersion(version int) error {
	e := apierr.New(apierr.IncompatibleVersion, "start a script: its process speaks version %d of the protocol and this one %d, "+
		"because the program's file was replaced while it runs", version, protocolVersion)
	e.Next = []string{"restart the coordinator; its runs go on where they are"}
	return e
}

// errNoAnswer is a child that does not speak the protocol.
var errNoAnswer = errors.New("the script's process gave no answer that is understood")

// step asks for the next yield. The end of the child is the end of the script, so it comes as a yield.
func (s *childSession) step(ctx context.Context, q question) (Yield, error) {
	a, err := s.ask(ctx, q)
	var failure *Failure
	switch {
	case errors.As(err, &failure):
		return s.ended(failure), nil
	case err != nil:
		return Yield{}, err
	case a.Yield == nil:
		return Yield{}, errNoAnswer
	}
	return *a.Yield, nil
}

func (s *childSession) ended(f *Failure) Yield {
	f.File = s.program.Name
	return Yield{End: &End{Failure: f}}
}

// ask sends a question and waits for the answer. It returns a *Failure when the child died of the script.
func (s *childSession) ask(ctx context.Context, q question) (answer, error) {
	if s.closed.Load() {
		return answer{}, errClosed
	}
	cancelled := context.AfterFunc(ctx, s.kill)
	defer cancelled()
	backstop := time.AfterFunc(s.patience(len(q.Replay)), func() {
		s.late.Store(true)
		s.kill()
	})
	defer backstop.Stop()

	var a answer
	err := writeMessage(s.in, q)
	if err == nil {
		err = readMessage(s.out, &a)
	}
	if err != nil {
		return answer{}, s.died(ctx, err)
	}
	if a.Version != protocolVersion {
		s.stop()
		return answer{}, errOtherVersion(a.Version)
	}
	if a.Error != "" {
		return answer{}, fmt.Errorf("the script's process: %s", a.Error)
	}
	return a, nil
}

// patience is how long a step, or so many in a replay, may take by the clock. The child counts its own CPU time; this is for one that cannot. Whose
// fault that is nobody knows, the machine may have been asleep, so it is not the script that is blamed.
func (s *childSession) patience(replayed int) time.Duration {
	return 10*s.limits.CPU*time.Duration(max(1, replayed)) + 30*time.Second
}

func (s *childSession) died(ctx context.Context, err error) error {
	byCaller := s.closed.Load()
	s.stop()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case byCaller:
		return errClosed
	case errors.Is(err, errTooLong):
		return tooLong()
	default:
		return exitFailure(s.cmd.ProcessState, s.late.Load(), s.stderr.String(), s.limits)
	}
}

// named gives a failure that knows no file the program's name.
func named(err error, p Program) error {
	var failure *Failure
	if errors.As(err, &failure) && failure.File == "" {
		failure.File = p.Name
	}
	return err
}
