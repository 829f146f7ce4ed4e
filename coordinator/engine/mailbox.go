package engine

import "sync"

// mailbox is an unbounded queue that many put into and one takes from, all at once. It is unbounded because a writer must
// never wait for the loop: dispatch, fleet and scripts would then wait for each other. What bounds it is that each writer
// has little in flight.
type mailbox[T any] struct {
	mu    sync.Mutex
	queue []T
	wake  chan struct{} // capacity 1: holds a value when queue may not be empty
}

func newMailbox[T any]() *mailbox[T] { return &mailbox[T]{wake: make(chan struct{}, 1)} }

func (m *mailbox[T]) put(v T) {
	m.mu.Lock()
	m.queue = append(m.queue, v)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *mailbox[T]) take() []T {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.queue
	m.queue = nil
	return q
}
