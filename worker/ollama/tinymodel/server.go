package tinymodel

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
)

// How long a server may take to listen, and to end its runners.
const (
	startLimit = 30 * time.Second
	stopLimit  = 10 * time.Second
)

// ServerOptions says which server to start and how.
type ServerOptions struct {
	Binary  string   // the ollama program; empty skips the test
	Address string   // host:port on loopback; empty: a free port
	Models  string   // folder of the models; empty: an own one that goes with the test
	Env     []string // more variables, such as OLLAMA_NUM_PARALLEL=2
}

// Server is a running `ollama serve` with a folder of models of its own.
type Server struct {
	URL    string      // http://127.0.0.1:port, what OLLAMA_HOST would say
	Client *api.Client // talks to it
	Models string      // its folder of models, for a server that takes over from this one

	process   *exec.Cmd
	transport *http.Transport
	log       *serverLog
	once      sync.Once
	exited    chan struct{} // closed when the process has ended and was waited for
}

// Start starts a server and returns when it answers. It ends with the test, which shows the server's log if it failed.
func Start(t testing.TB, o ServerOptions) *Server {
	t.Helper()
	if o.Binary == "" {
		t.Skip("needs a real Ollama server: make test-ollama")
	}
	if o.Address == "" {
		o.Address = "127.0.0.1:0"
	}
	if o.Models == "" {
		o.Models = t.TempDir()
	}
	s := &Server{Models: o.Models, log: newServerLog(), exited: make(chan struct{})}
	s.process = exec.Command(o.Binary, "serve")
	// A home of its own, because the server writes a key there; nothing of a real installation is read or changed.
	s.process.Env = append(s.process.Environ(), "HOME="+t.TempDir(), "OLLAMA_MODELS="+o.Models, "OLLAMA_HOST="+o.Address)
	s.process.Env = append(s.process.Env, o.Env...)
	s.process.Stdout, s.process.Stderr = s.log, s.log
	s.process.WaitDelay = stopLimit // a runner that outlives the server must not keep its output open for ever
	if err := s.process.Start(); err != nil {
		t.Fatalf("start %s: %v", o.Binary, err)
	}
	go func() {
		defer close(s.exited)
		_ = s.process.Wait() // how it ended is in its log
	}()
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("log of the server at %s:\n%s", s.URL, s.log.tail())
		}
	})
	s.connect(t)
	return s
}

// connect waits until the server says where it listens, and makes the client.
func (s *Server) connect(t testing.TB) {
	t.Helper()
	select {
	case address := <-s.log.listening:
		s.URL = "http://" + address
	case <-s.exited:
		t.Fatalf("the server ended before it listened:\n%s", s.log.tail())
	case <-time.After(startLimit):
		t.Fatalf("the server does not listen after %s:\n%s", startLimit, s.log.tail())
	}
	base, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.transport = &http.Transport{}
	s.Client = api.NewClient(base, &http.Client{Transport: s.transport})
	if err := s.Client.Heartbeat(context.Background()); err != nil {
		t.Fatalf("the server at %s does not answer: %v", s.URL, err)
	}
}

// Create puts a model on the server; see the function of the same name.
func (s *Server) Create(t testing.TB, name string, o Options) {
	t.Helper()
	if err := Create(t.Context(), s.Client, name, o); err != nil {
		t.Fatal(err)
	}
}

// Stop asks the server to end its runners and itself, and kills it when that takes too long. It returns when the server
// is gone; a second call does nothing.
func (s *Server) Stop() { s.end(os.Interrupt) }

// Kill ends the server at once, as a crash would. Its runners may outlive it for a moment.
func (s *Server) Kill() { s.end(os.Kill) }

func (s *Server) end(signal os.Signal) {
	s.once.Do(func() {
		_ = s.process.Process.Signal(signal) // fails only when it has ended already
		select {
		case <-s.exited:
		case <-time.After(stopLimit):
			_ = s.process.Process.Kill()
			<-s.exited
		}
		if s.transport != nil {
			s.transport.CloseIdleConnections()
		}
	})
}

// serverLog keeps what a server prints and reports the address it says it listens on.
type serverLog struct {
	listening chan string // holds the address once it is known

	mu   sync.Mutex
	text strings.Builder
	said bool
}

func newServerLog() *serverLog { return &serverLog{listening: make(chan string, 1)} }

// listeningLine is the server's own line of v0.17.4, server/routes.go: `Listening on 127.0.0.1:11434 (version 0.17.4)`.
var listeningLine = regexp.MustCompile(`Listening on (\S+) \(version`)

// Write implements io.Writer for the server's output.
func (l *serverLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if l.said {
		return len(p), nil
	}
	if match := listeningLine.FindStringSubmatch(l.text.String()); match != nil {
		l.said = true
		l.listening <- match[1]
	}
	return len(p), nil
}

// tail returns the end of the log.
func (l *serverLog) tail() string {
	const most = 8 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text.String()
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return text
}
