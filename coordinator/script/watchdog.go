package script

import (
	"fmt"
	"os"
	"runtime/metrics"
	"time"
)

// watchdog holds the script of a child process to its limits. It first interrupts the script, which tells the line; a
// script inside a native call cannot be interrupted, so then it ends the process with a code that says why.
type watchdog struct {
	limits Limits
	interrupter
	cpuBefore time.Duration // CPU time of the process when the step began
	began     time.Time     // when the step did
	asked     time.Time     // when the step was interrupted
	code      int           // with which the process is to end of that
}

// guard runs a step of the script under watch.
func (w *watchdog) guard(v *vm, step func() error) (err error) {
	w.mu.Lock()
	w.vm, w.cause, w.cpuBefore, w.began = v, nil, cpuTime(), time.Now()
	w.mu.Unlock()
	defer func() {
		w.disarm()
		if panicked := recover(); panicked != nil {
			err = panicFailure(panicked)
		}
	}()
	return step()
}

func (w *watchdog) run() {
	for range time.Tick(watchInterval) {
		w.check(memoryUsed(), cpuTime())
	}
}

func (w *watchdog) check(memory int64, cpu time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.vm == nil:
	case memory > w.limits.Memory*3/2:
		os.Exit(exitMemory)
	case w.cause != nil:
		if time.Since(w.asked) > interruptGrace {
			os.Exit(w.code)
		}
	case memory > w.limits.Memory:
		w.stop(memoryFailure(w.limits.Memory), exitMemory)
	case cpu-w.cpuBefore > w.limits.CPU:
		w.stop(cpuFailure(w.limits.CPU, time.Since(w.began)), exitCPU)
	}
}

// stop interrupts the step. What stopped it is noted before, and once: whatever else is exceeded later is not the reason.
func (w *watchdog) stop(why *Failure, code int) {
	w.asked, w.code = time.Now(), code
	w.interrupt(why)
}

func memoryFailure(limit int64) *Failure {
	return &Failure{Kind: Memory, Message: fmt.Sprintf("the script used more than %d MiB of memory (the limit is %s); "+
		"the line is where it was stopped, and others may hold more", limit>>20, memoryKnob)}
}

// memoryUsed returns the bytes that this process has from the operating system and did not give back.
func memoryUsed() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64()) - int64(samples[1].Value.Uint64())
}
