// Package source is the one seam between a probe and a machine: files, vendors' command-line tools, and questions to the
// operating system. Everything a probe knows comes through a Machine, so a probe can run on the real machine, on a recorded
// one, or on one made up by a test.
package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Machine is everything that a probe may look at. All its parts are safe for concurrent use.
type Machine struct {
	OS, Arch string // as Go spells them, of the machine that is looked at
	Files    fs.FS  // its root; names without a leading slash, such as "proc/meminfo"
	Commands Runner
	Calls    Caller
}

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

// Calls is a Caller by a table of names.
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
