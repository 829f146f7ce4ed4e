package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrNoCall says that this system has no such question, as a Linux has no "metal".
var ErrNoCall = errors.New("no such call on this system")

// Caller asks the operating system what neither files nor commands tell, such as a sysctl, a registry key or an ioctl.
type Caller interface {
	// Call returns the answer as JSON. An error that wraps ErrNoCall means that the system has no such question; one that
	// wraps fs.ErrPermission, that the answer needs more rights; one that wraps fs.ErrNotExist, that the asked is not there.
	Call(ctx context.Context, name string, args ...string) ([]byte, error)
}

// Call answers one question; its answer is marshalled to JSON.
type Call func(ctx context.Context, args ...string) (any, error)

// Calls is a Caller by a table of names. It is safe to use as it is with calls that always return; see Guard for others.
type Calls map[string]Call

// Call implements Caller.
func (c Calls) Call(ctx context.Context, name string, args ...string) ([]byte, error) {
	ask, known := c[name]
	if !known {
		return nil, fmt.Errorf("%s: %w", name, ErrNoCall)
	}
	answer, err := ask(ctx, args...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return json.Marshal(answer)
}

// Ask calls and decodes the answer into T. An answer of another shape is an error, and what it says is not used.
func Ask[T any](ctx context.Context, c Caller, name string, args ...string) (T, error) {
	var answer, none T
	raw, err := c.Call(ctx, name, args...)
	if err != nil {
		return none, err
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return none, fmt.Errorf("%s: %w", name, err)
	}
	return answer, nil
}

// Guard gives a caller the guarantees of Commands: a call that hangs in a driver is left at the deadline (ErrStuck) and not
// made again while it lives, a panic is an error, and an answer is at most 1 MiB. Safe for concurrent use.
func Guard(c Caller) Caller { return &guarded{Caller: c} }

type guarded struct {
	Caller
	stuck lingering // by name and arguments: one card that hangs says nothing about another
}

type callAnswer struct {
	raw []byte
	err error
}

// Call implements Caller.
func (g *guarded) Call(ctx context.Context, name string, args ...string) ([]byte, error) {
	key := strings.Join(append([]string{name}, args...), "\x00")
	if g.stuck.has(key) {
		return nil, fmt.Errorf("%s: an earlier call: %w", name, ErrStuck)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s: %w", name, context.Cause(ctx))
	}
	answered := make(chan callAnswer, 1)
	go func() { answered <- g.call(ctx, name, args) }()
	select {
	case a := <-answered:
		return a.raw, a.err
	case <-ctx.Done():
	}
	select { // one that minds its context ends now
	case a := <-answered:
		return a.raw, a.err
	case <-time.After(pipeGrace):
	}
	leave(&g.stuck, key, answered)
	return nil, fmt.Errorf("%s: %w: %w", name, context.Cause(ctx), ErrStuck)
}

func (g *guarded) call(ctx context.Context, name string, args []string) (a callAnswer) {
	defer func() {
		if p := recover(); p != nil {
			a = callAnswer{err: fmt.Errorf("%s: panic: %v", name, p)}
		}
	}()
	raw, err := g.Caller.Call(ctx, name, args...)
	if len(raw) > outputLimit {
		return callAnswer{err: fmt.Errorf("%s: %w (over %d bytes)", name, ErrOutputTooLarge, outputLimit)}
	}
	return callAnswer{raw: raw, err: err}
}
