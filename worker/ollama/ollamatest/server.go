package ollamatest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// ServerHeader is the value of the Server header on every response. It lets a client see that a node is simulated.
const ServerHeader = "fakeollama"

// Server is one simulated Ollama. It is an http.Handler and safe for concurrent use.
type Server struct {
	cfg    Config
	sched  *scheduler
	dice   *dice
	calls  *callLog
	probes *callLog
	mux    *http.ServeMux

	mu     sync.Mutex
	models []installed
}

// installed is a model and when it came.
type installed struct {
	Model
	since time.Time
}

// New makes a server. It panics on a configuration that makes no sense, because that is a mistake in the test; check one
// that a user wrote with Open.
func New(cfg Config) *Server {
	s, err := Open(cfg)
	if err != nil {
		panic("ollamatest: " + err.Error())
	}
	return s
}

// Open makes a server, or says which key of the configuration is wrong.
func Open(cfg Config) (*Server, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	d := newDice(cfg.Seed, cfg.Faults)
	s := &Server{cfg: cfg, sched: newScheduler(cfg, d), dice: d, calls: newCallLog(), probes: newCallLog(), mux: http.NewServeMux()}
	for _, m := range cfg.Models {
		s.models = append(s.models, installed{m, time.Now()})
	}
	s.routes()
	return s, nil
}

func (s *Server) routes() {
	alive := func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "Ollama is running") }
	s.mux.HandleFunc("GET /{$}", alive)
	s.mux.HandleFunc("GET /api/version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"version": s.cfg.Version})
	})
	s.mux.HandleFunc("GET /api/tags", s.tags)
	s.mux.HandleFunc("GET /api/ps", s.ps)
	s.mux.HandleFunc("POST /api/show", s.show)
	s.mux.HandleFunc("POST /api/generate", s.generate)
	s.mux.HandleFunc("POST /api/chat", s.chat)
	s.mux.HandleFunc("POST /api/embed", s.embed)
	s.mux.HandleFunc("POST /api/pull", s.pull)
	s.mux.HandleFunc("DELETE /api/delete", s.delete)
	s.controlRoutes()
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", ServerHeader)
	s.mux.ServeHTTP(w, r)
}

// Close unloads all models and stops their timers. Requests under way end when their clients do.
func (s *Server) Close() { s.sched.close() }

// Calls returns the requests for work so far, in order of arrival.
func (s *Server) Calls() []Call {
	calls, _ := s.calls.snapshot()
	return calls
}

// Probes returns what workers sent to find out how a format is applied; it is no work, and neither among the calls nor counted.
func (s *Server) Probes() []Call {
	probes, _ := s.probes.snapshot()
	return probes
}

// Counts returns totals since the start or the last Reset.
func (s *Server) Counts() Counts {
	_, counts := s.calls.snapshot()
	return counts
}

// Loads is how often a model was loaded since the start.
func (s *Server) Loads() int {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	return s.sched.loads
}

// Loaded names the loaded models, in order.
func (s *Server) Loaded() []string {
	var names []string
	for _, m := range s.running() {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return names
}

// Occupy has other programs take so much of the device, bytes; it replaces what they had before.
func (s *Server) Occupy(bytes Bytes) {
	s.sched.mu.Lock()
	defer s.sched.mu.Unlock()
	s.sched.foreign = int64(bytes)
}

// SetFaults replaces the faults; the count of repetitions starts anew. It panics on faults that make no sense.
func (s *Server) SetFaults(faults ...Fault) {
	if err := checkFaults(faults); err != nil {
		panic("ollamatest: " + err.Error())
	}
	s.dice.reset(s.cfg.Seed, faults)
}

// Reset forgets the calls, restores the configured faults and unloads all models.
func (s *Server) Reset() {
	s.calls.reset()
	s.probes.reset()
	s.dice.reset(s.cfg.Seed, s.cfg.Faults)
	s.sched.crash("")
}

// find looks a model up by the name in a request.
func (s *Server) find(name string) (Model, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.models {
		if m.Name == tagged(name) {
			return m.Model, true
		}
	}
	return Model{}, false
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // fails only when the client is gone
}

func writeError(w http.ResponseWriter, status int, format string, args ...any) {
	writeJSON(w, status, map[string]string{"error": fmt.Sprintf(format, args...)})
}

// decode reads the body into v, or answers as Ollama does and returns false.
func decode(w http.ResponseWriter, r *http.Request, v any) bool {
	err := json.NewDecoder(r.Body).Decode(v)
	switch {
	case errors.Is(err, io.EOF):
		writeError(w, http.StatusBadRequest, "missing request body")
	case err != nil:
		writeError(w, http.StatusBadRequest, "%v", err)
	default:
		io.Copy(io.Discard, r.Body) // net/http notices a disconnect only once the body is read
		return true
	}
	return false
}
