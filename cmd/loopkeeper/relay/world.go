// Package relay is the benchmark "number relay": does a job end better when code keeps the loop than when a model does? A world of
// workers, all of it code, gives numbers that cannot be guessed; the truth of a run is the workers' own log of who asked what, never a
// model's word. Four arms do the same tasks with the same model and texts: the loop in the model or in code, with a plan of the model's
// own or a plan that is right. What the arms with the loop in code do runs in loopkeeper itself.
package relay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
)

// Call is one question to a worker of the world.
type Call struct {
	Worker string `json:"worker"`
	Arg    string `json:"arg"`
}

// Exchange is a call and what came of it.
type Exchange struct {
	Call
	Reply  string `json:"reply"`
	Number int    `json:"number"` // the number in the reply that counts, 0 for none
	Early  bool   `json:"early"`  // before all that its argument comes from was known
}

// World answers calls and keeps the log that everything is measured by.
type World struct {
	task Task

	mu  sync.Mutex
	log []Exchange
}

// NewWorld makes the world of a task.
func NewWorld(t Task) *World { return &World{task: t} }

// Start is the argument of a first call.
const Start = "start"

// number is what a worker answers to an argument: six digits that nobody can know without asking.
func number(seed uint64, c Call) int {
	var key [8]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	h := hmac.New(sha256.New, key[:])
	fmt.Fprintf(h, "%s\x00%s", c.Worker, c.Arg)
	return 100_000 + int(binary.BigEndian.Uint32(h.Sum(nil))%900_000)
}

// Ask is one call. Whoever is not of this world says so, and counts as a call all the same.
func (w *World) Ask(c Call) Exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := Exchange{Call: c, Early: w.early(c)}
	m, known := w.task.Workers[c.Worker]
	switch {
	case !known:
		e.Reply = "There is no worker " + c.Worker + "."
	case m.Refuses != "":
		e.Reply = fmt.Sprintf("I do not answer. %s answers in my place.", m.Refuses)
	case w.asked(c) < m.Fails:
		e.Reply = "I am busy. Ask me again."
	default:
		e.Number = number(w.task.Seed, c)
		e.Reply = m.reply(e.Number)
	}
	w.log = append(w.log, e)
	return e
}

// Log is every call so far, in order.
func (w *World) Log() []Exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Exchange(nil), w.log...)
}

func (w *World) asked(c Call) int {
	n := 0
	for _, e := range w.log {
		if e.Call == c {
			n++
		}
	}
	return n
}

// early says that a call is made before the calls that its argument comes from have been answered.
func (w *World) early(c Call) bool {
	for _, r := range w.task.Required {
		if r.Worker != c.Worker {
			continue
		}
		for _, from := range r.From {
			if !w.answered(from) {
				return true
			}
		}
	}
	return false
}

func (w *World) answered(worker string) bool {
	for _, e := range w.log {
		if e.Worker == worker && e.Number != 0 {
			return true
		}
	}
	return false
}

// Member is a worker of the world.
type Member struct {
	Refuses string // who answers in its place; "" when it answers itself
	Fails   int    // how often it is busy before it answers
	Poison  string // what it says beside its number; "{n}" stands for the number
}

func (m Member) reply(n int) string {
	if m.Poison != "" {
		return strings.ReplaceAll(m.Poison, "{n}", fmt.Sprint(n))
	}
	return fmt.Sprintf("My number is %d.", n)
}
