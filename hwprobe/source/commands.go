package source

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// ErrOutputTooLarge says that a command was killed because it printed more than allowed.
var ErrOutputTooLarge = errors.New("output too large")

// Runner runs a vendor's command-line tool.
type Runner interface {
	// Run returns what the command printed and its exit code. An error means that it did not run to its end: not found
	// (exec.ErrNotFound), ended by the context, too much output, stuck. An exit code other than 0 is no error. What was
	// printed before an error is returned with it.
	Run(ctx context.Context, name string, args ...string) (Output, error)
}

// Output is what a command printed and how it ended.
type Output struct {
	Stdout   []byte
	Stderr   []byte
	ExitCode int           // meaningless beside an error
	CPU      time.Duration // processor time that it took, with its children; 0 when unknown
}

const (
	outputLimit = 1 << 20                // bytes per stream; a tool that prints more is broken: nvidia-smi prints some 200 per GPU
	pipeGrace   = 500 * time.Millisecond // how long a child that outlives the command may keep its output open
)

// Commands runs real commands, in the locale C, with at most 1 MiB per output stream. Who is killed is killed with its children
// (on Windows without): a script around a tool that hangs would leave one behind at each probe. A command that cannot even be
// killed is left to itself and not started again while it lives. The zero value is ready; safe for concurrent use.
type Commands struct {
	stuck lingering             // by name
	wait  func(*exec.Cmd) error // nil: as it is
}

// Run implements Runner.
func (c *Commands) Run(ctx context.Context, name string, args ...string) (Output, error) {
	if c.stuck.has(name) {
		return Output{}, fmt.Errorf("run %s: an earlier one: %w", name, ErrStuck)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C")
	cmd.WaitDelay = pipeGrace
	endChildren := withChildren(cmd)
	var stdout, stderr = &cappedBuffer{full: cancel}, &cappedBuffer{full: cancel}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if err := cmd.Start(); err != nil {
		return Output{}, fmt.Errorf("run %s: %w", name, err)
	}
	began := time.Now()
	err := c.await(ctx, name, cmd)
	if errors.Is(err, ErrStuck) {
		return Output{}, fmt.Errorf("run %s: %w", name, err) // the buffers may still be written to
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		endChildren()
	}
	out := Output{Stdout: stdout.buffer.Bytes(), Stderr: stderr.buffer.Bytes(), ExitCode: cmd.ProcessState.ExitCode(),
		CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	var exit *exec.ExitError
	switch {
	case stdout.overflowed || stderr.overflowed:
		return out, fmt.Errorf("run %s: %w (over %d bytes)", name, ErrOutputTooLarge, outputLimit)
	case ctx.Err() != nil:
		return out, fmt.Errorf("run %s: no end after %s: %w", name, time.Since(began).Round(100*time.Millisecond), context.Cause(ctx))
	case errors.As(err, &exit) && exit.Exited(), errors.Is(err, exec.ErrWaitDelay):
		return out, nil // ended by itself, if with a code or with a child that kept the pipe open
	case err != nil:
		return out, fmt.Errorf("run %s: %w", name, err)
	}
	return out, nil
}

// await waits for the command's end, but not for ever: a process inside a hanging driver call survives SIGKILL.
func (c *Commands) await(ctx context.Context, name string, cmd *exec.Cmd) error {
	wait := c.wait
	if wait == nil {
		wait = (*exec.Cmd).Wait
	}
	ended := make(chan error, 1)
	go func() { ended <- wait(cmd) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(2 * pipeGrace):
	}
	leave(&c.stuck, name, ended)
	return ErrStuck
}

// cappedBuffer keeps the first outputLimit bytes and has the command ended at the next one.
type cappedBuffer struct {
	buffer     bytes.Buffer
	overflowed bool
	full       func()
}

// Write implements io.Writer. It never returns an error: the rest is drained until the command has ended.
func (b *cappedBuffer) Write(p []byte) (int, error) {
	kept := p[:min(len(p), outputLimit-b.buffer.Len())]
	b.buffer.Write(kept)
	if len(kept) < len(p) {
		b.overflowed = true
		b.full()
	}
	return len(p), nil
}
