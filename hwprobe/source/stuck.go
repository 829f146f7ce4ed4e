package source

import (
	"errors"
	"sync"
)

// ErrStuck says that a command or a call does not end although it was told to, as happens when it hangs inside a driver.
// It is left to itself, and not started again while it lives.
var ErrStuck = errors.New("it hangs and does not end")

// lingering counts what was left behind and still lives, by name. The zero value is ready; safe for concurrent use.
type lingering struct {
	mu    sync.Mutex
	count map[string]int
}

func (l *lingering) has(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count[name] > 0
}

// leave counts one until ended is closed or answers. The goroutine lives exactly as long as what nobody can end.
func leave[T any](l *lingering, name string, ended <-chan T) {
	l.add(name, 1)
	go func() {
		<-ended
		l.add(name, -1)
	}()
}

func (l *lingering) add(name string, delta int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count == nil {
		l.count = map[string]int{}
	}
	l.count[name] += delta
}
