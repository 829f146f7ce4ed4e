package script

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"
)

// ServeChild is the other end of NewChildHost: it runs one script, told by the lines on stdin, and answers on stdout. It
// takes over the process: it ends it when stdin ends, whatever the script is doing then, so that a child never outlives
// its parent, and when the script exceeds its limits.
func ServeChild(stdin io.Reader, stdout io.Writer) error {
	// Ctrl-C and a stopping service signal every process at once. The host has to end first, or it would see a crash.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	time.Local = time.UTC // a Date must not depend on where the coordinator stands
	runtime.GOMAXPROCS(2) // the script and its watchdog
	questions := make(chan question)
	failed := make(chan error, 1)
	go func() { failed <- readQuestions(stdin, questions) }()

	c := &child{}
	for {
		select {
		case err := <-failed:
			return err
		case q := <-questions:
			if c.watch == nil && q.Version == protocolVersion && q.Limits != nil {
				c.limit(*q.Limits)
			}
			if err := reply(stdout, c.answer(q)); err != nil {
				return fmt.Errorf("answer the host: %w", err)
			}
		}
	}
}

// reply sends an answer. A script that asks for more than fits into a message has ended.
func reply(stdout io.Writer, a answer) error {
	a.Version = protocolVersion
	err := writeMessage(stdout, a)
	if errors.Is(err, errTooLong) {
		return writeMessage(stdout, answer{Version: protocolVersion, Yield: &Yield{End: &End{Failure: tooLong()}}})
	}
	return err
}

func readQuestions(stdin io.Reader, questions chan<- question) error {
	in := bufio.NewReader(stdin)
	for {
		var q question
		err := readMessage(in, &q)
		if errors.Is(err, io.EOF) {
			os.Exit(0)
		}
		if err != nil {
			return fmt.Errorf("read from the host: %w", err)
		}
		questions <- q
	}
}

// child is the state of the process: at most one script.
type child struct {
	vm    *vm
	watch *watchdog
}

func (c *child) limit(l Limits) {
	debug.SetMemoryLimit(l.Memory * 3 / 4) // collect hard before the watchdog bites
	debug.SetMaxStack(int(l.Memory / 2))
	c.watch = &watchdog{limits: l}
	go c.watch.run() // lives as long as the process
}

func (c *child) answer(q question) answer {
	if c.watch == nil {
		return answer{Error: "the first message has no limits, or is of another version of the protocol"}
	}
	switch {
	case q.Describe != nil:
		return c.describe(*q.Describe)
	case q.Start != nil:
		return c.start(*q.Start)
	case q.Delivery != nil && c.vm != nil:
		return c.step(func() (Yield, error) { return c.vm.deliver(*q.Delivery) })
	case q.Replay != nil && c.vm != nil:
		return c.replay(q.Replay)
	default:
		return answer{Error: "a delivery came before the start"}
	}
}

func (c *child) describe(p Program) answer {
	v, err := newVM(0, time.Time{})
	if err != nil {
		return answer{Error: err.Error()}
	}
	var found Interface
	err = c.watch.guard(v, func() (err error) {
		found, err = v.describe(p)
		return err
	})
	var failure *Failure
	switch {
	case errors.As(err, &failure):
		return answer{Failure: failure}
	case err != nil:
		return answer{Error: err.Error()}
	}
	return answer{Interface: &found}
}

func (c *child) start(s Start) answer {
	var err error
	if c.vm, err = newVM(s.Seed, s.Clock); err != nil {
		return answer{Error: err.Error()}
	}
	return c.step(func() (Yield, error) { return c.vm.start(s.Program, s.Input), nil })
}

func (c *child) replay(ds []Delivery) answer {
	yields, err := deliverEach(ds, func(d Delivery) (Yield, error) {
		a := c.step(func() (Yield, error) { return c.vm.deliver(d) })
		if a.Yield == nil {
			return Yield{}, errors.New(a.Error)
		}
		return *a.Yield, nil
	})
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Yields: yields}
}

func (c *child) step(run func() (Yield, error)) answer {
	var y Yield
	err := c.watch.guard(c.vm, func() (err error) {
		y, err = run()
		return err
	})
	var failure *Failure
	switch {
	case errors.As(err, &failure):
		y = c.vm.end(failure)
	case err != nil:
		return answer{Error: err.Error()}
	}
	return answer{Yield: &y}
}
