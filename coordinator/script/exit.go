package script

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// exitFailure says why a child process died. Go ends a process that the operating system refuses memory, or whose stack
// has outgrown its limit, with code 2 and a text; there is no other way to tell these from a fault of our own.
func exitFailure(ended *os.ProcessState, late bool, stderr string, limits Limits) *Failure {
	code := ended.ExitCode()
	first, _, _ := strings.Cut(stderr, "\n\n") // a Go crash goes on with goroutines
	switch {
	case late:
		return &Failure{Kind: Crashed, Message: "the script's process did not answer in time, and was ended; the machine may be overloaded or was asleep"}
	case code == exitCPU:
		return nativeFailure(limits.CPU)
	case code == exitMemory, strings.Contains(stderr, "out of memory"), strings.Contains(stderr, "cannot allocate memory"):
		return memoryFailure(limits.Memory)
	case strings.Contains(stderr, "stack overflow"), strings.Contains(stderr, "stack exceeds"):
		return &Failure{Kind: Memory, Message: "functions call each other too deeply inside built-in calls"}
	default:
		return &Failure{Kind: Crashed, Message: strings.TrimSpace(fmt.Sprintf("the script's process ended: %v %s", ended, first))}
	}
}

// MaxValue is the most that a script is given as the value of one step, bytes: as objects it takes several times that.
const MaxValue = 16 << 20

// TooLarge is what a script is told instead of a value of more than MaxValue. Whoever knows the size of a body need not open
// it. It is a fixed limit, because a replay years from now must tell the script the same.
func TooLarge(pos int, size int64) *CallError {
	return &CallError{Kind: "too_large", Step: pos, Message: fmt.Sprintf("the result of step %d has %.1f MiB, and a script is given at most %d MiB; "+
		"pass it on by reference, or ask for less", pos, float64(size)/(1<<20), MaxValue>>20)}
}

// bounded puts TooLarge in place of a value that a script must not be given.
func bounded(d Delivery) Delivery {
	if len(d.Value) > MaxValue {
		d.Err, d.Value = TooLarge(d.Pos, int64(len(d.Value))), nil
	}
	return d
}

func tooLong() *Failure {
	return &Failure{Kind: Memory, Message: errTooLong.Error() + "; pass large values by reference"}
}

// head keeps the beginning of what is written, which for a crash is its reason.
type head struct {
	mu   sync.Mutex
	text []byte
}

const headSize = 8 << 10

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, p[:min(len(p), headSize-len(h.text))]...)
	return len(p), nil
}

func (h *head) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return string(h.text)
}
