package probe

import (
	"context"
	"fmt"
	"time"

	"github.com/loopkeeper/loopkeeper/hwprobe/source"
)

// endGrace is how long a part of the probe may take to come back after its deadline: a tool that hangs is killed by then.
const endGrace = 2 * time.Second

// part runs one part of the probe again and again, and is never held up by it: a run that does not come back, such as a read
// from a broken driver's file, is left behind, and there is no other until it has come back. It has one user at a time.
type part[T any] struct {
	name    string
	left    chan ended[T] // answers when the run that was left behind comes back; nil when there is none
	since   time.Time     // when that run began
	started int           // runs begun, for tests
}

type ended[T any] struct {
	value T
	err   error // it panicked
}

// run returns what do returns. An error that wraps source.ErrStuck means that it hangs, any other that it broke.
func (p *part[T]) run(ctx context.Context, do func(context.Context) T) (T, error) {
	var none T
	if p.left != nil {
		select {
		case <-p.left: // too late to be of use
			p.left = nil
		default:
			return none, p.stuck()
		}
	}
	p.since = time.Now()
	p.started++
	end := make(chan ended[T], 1)
	go func() { end <- try(ctx, do) }()
	select {
	case e := <-end:
		return e.value, e.err
	case <-ctx.Done():
	}
	grace := time.NewTimer(endGrace)
	defer grace.Stop()
	select {
	case e := <-end:
		return e.value, e.err
	case <-grace.C:
	}
	p.left = end
	return none, p.stuck()
}

func (p *part[T]) stuck() error {
	return fmt.Errorf("the part %s of the probe has not come back for %s: %w", p.name, time.Since(p.since).Round(time.Second), source.ErrStuck)
}

// try turns a panic into an error: a fault in what reads one vendor's devices must not end the program.
func try[T any](ctx context.Context, do func(context.Context) T) (e ended[T]) {
	defer func() {
		if p := recover(); p != nil {
			e.err = fmt.Errorf("panic: %v", p)
		}
	}()
	return ended[T]{value: do(ctx)}
}
