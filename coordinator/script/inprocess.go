package script

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// The defaults of Limits. A script only steers: it needs milliseconds, and memory for the values it looks at.
const (
	DefaultCPULimit          = 10 * time.Second
	DefaultMemoryLimit int64 = 512 << 20 // bytes
)

// Limits bound what a script may use. Zero values mean the defaults.
type Limits struct {
	CPU    time.Duration // computing between two yields; in a child its own CPU time, in this process elapsed time
	Memory int64         // bytes; only a child is held to it
}

func (l Limits) withDefaults() Limits {
	if l.CPU == 0 {
		l.CPU = DefaultCPULimit
	}
	if l.Memory == 0 {
		l.Memory = DefaultMemoryLimit
	}
	return l
}

// NewHost returns a host that runs scripts in this process. It cannot stop a script inside one native call and does not
// bound memory, so it is for programs one trusts and for tests under fake time. Date's local time zone is this process's.
func NewHost(limits Limits) Host { return &localHost{limits.withDefaults()} }

type localHost struct{ limits Limits }

func (h *localHost) Describe(ctx context.Context, p Program) (Interface, error) {
	v, err := newVM(0, time.Time{})
	if err != nil {
		return Interface{}, err
	}
	var found Interface
	err = guard(ctx, v, h.limits.CPU, func() (err error) {
		found, err = v.describe(p)
		return err
	})
	return found, err
}

func (h *localHost) Start(ctx context.Context, start Start) (Session, Yield, error) {
	v, err := newVM(start.Seed, start.Clock)
	if err != nil {
		return nil, Yield{}, err
	}
	s := &localSession{limits: h.limits, vm: v}
	y, err := s.step(ctx, func() (Yield, error) { return v.start(start.Program, start.Input), nil })
	if err != nil {
		return nil, Yield{}, err
	}
	return s, y, nil
}

type localSession struct {
	limits Limits
	vm     *vm
	closed atomic.Bool
}

// errClosed is what a session that was closed, or given up, answers.
var errClosed = errors.New("the script's session is closed")

func (s *localSession) Deliver(ctx context.Context, d Delivery) (Yield, error) {
	return s.step(ctx, func() (Yield, error) { return s.vm.deliver(bounded(d)) })
}

func (s *localSession) DeliverAll(ctx context.Context, ds []Delivery) (yields []Yield, err error) {
	return deliverEach(ds, func(d Delivery) (Yield, error) { return s.Deliver(ctx, d) })
}

// deliverEach delivers until the script ends.
func deliverEach(ds []Delivery, deliver func(Delivery) (Yield, error)) ([]Yield, error) {
	yields := make([]Yield, 0, len(ds))
	for _, d := range ds {
		y, err := deliver(d)
		if err != nil {
			return yields, err
		}
		if yields = append(yields, y); y.End != nil {
			break
		}
	}
	return yields, nil
}

// step runs the script until it yields. A session whose step was given up is closed: its state is that of no replay.
func (s *localSession) step(ctx context.Context, run func() (Yield, error)) (y Yield, err error) {
	if s.closed.Load() {
		return Yield{}, errClosed
	}
	err = guard(ctx, s.vm, s.limits.CPU, func() (err error) {
		y, err = run()
		return err
	})
	var failure *Failure
	if errors.As(err, &failure) {
		return s.vm.end(failure), nil
	}
	if ctx.Err() != nil {
		s.closed.Store(true)
	}
	return y, err
}

func (s *localSession) Close() error {
	s.closed.Store(true)
	return nil
}

// guard runs script code and interrupts it when ctx ends or limit has passed. A panic inside the interpreter, which an
// absurd size in a native call can cause, comes back as a failure.
func guard(ctx context.Context, v *vm, limit time.Duration, run func() error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	var i interrupter
	i.arm(v)
	timer := time.AfterFunc(limit, func() { i.stop(cpuFailure(limit, limit)) })
	cancelled := context.AfterFunc(ctx, func() { i.stop(&Failure{Kind: Crashed, Message: "given up"}) })
	defer func() {
		timer.Stop()
		cancelled()
		i.disarm()
		if panicked := recover(); panicked != nil {
			err = panicFailure(panicked)
		}
		if ctx.Err() != nil {
			err = ctx.Err()
		}
	}()
	return run()
}

// The names of the limits in the coordinator's configuration.
const (
	cpuKnob    = "script.cpu"
	memoryKnob = "script.memory_bytes"
)

// cpuFailure is a script that spun. On a busy machine its processor time took longer by the clock, which is what people see.
func cpuFailure(limit, took time.Duration) *Failure {
	return spun(limit, took, "the line is where it was stopped, or where its function begins")
}

// nativeFailure is one that could not be interrupted, so that nothing is known of where it was.
func nativeFailure(limit time.Duration) *Failure {
	return spun(limit, limit, "it was inside a built-in function, such as a regular expression, so that no line is known")
}

func spun(limit, took time.Duration, where string) *Failure {
	clock := ""
	if took > limit*3/2 {
		clock = fmt.Sprintf(", which took %v on this busy machine,", took.Round(100*time.Millisecond))
	}
	return &Failure{Kind: CPULimit, Message: fmt.Sprintf("the script computed for more than %v of processor time%s without waiting for a primitive "+
		"(the limit is %s); %s", limit, clock, cpuKnob, where)}
}

func panicFailure(panicked any) *Failure {
	return &Failure{Kind: Crashed, Message: fmt.Sprintf("the interpreter failed: %v", panicked)}
}

// interrupter stops a runtime from another goroutine, and only while it runs, so that a late interrupt never hits the
// next step.
type interrupter struct {
	mu    sync.Mutex
	vm    *vm      // nil while nothing runs
	cause *Failure // why it was interrupted
}

func (i *interrupter) arm(v *vm) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.vm, i.cause = v, nil
}

func (i *interrupter) disarm() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.vm.js.ClearInterrupt()
	i.vm = nil
}

// interrupt stops what runs, with the lock held. The first reason is the reason.
func (i *interrupter) interrupt(why *Failure) {
	if i.vm != nil && i.cause == nil {
		i.cause = why
		i.vm.js.Interrupt(&stopped{why})
	}
}

func (i *interrupter) stop(why *Failure) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.interrupt(why)
}
