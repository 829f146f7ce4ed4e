package ollamatest

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/ollama/ollama/api"
)

// Start serves on a loopback port until the test ends and returns the base URL.
func (s *Server) Start(t testing.TB) string {
	t.Helper()
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		s.Close()
	})
	return web.URL
}

// StartPipe serves real HTTP over in-memory connections until the test ends, so that it works under the fake time of
// testing/synctest. The base URL only works with the client.
func (s *Server) StartPipe(t testing.TB) (baseURL string, client *http.Client) {
	t.Helper()
	l := newPipeListener()
	web := &http.Server{Handler: s}
	served := make(chan struct{})
	go func() {
		defer close(served)
		web.Serve(l)
	}()
	transport := &http.Transport{DialContext: l.dial}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		web.Close()
		<-served
		s.Close()
	})
	return "http://ollama.test", &http.Client{Transport: transport}
}

// Client returns Ollama's own client for a server that Start or StartPipe serves; web is nil for Start.
func Client(baseURL string, web *http.Client) *api.Client {
	base, err := url.Parse(baseURL)
	if err != nil {
		panic("ollamatest: " + err.Error())
	}
	return api.NewClient(base, cmp.Or(web, http.DefaultClient))
}

// pipeListener hands the server's side of in-memory connections to an http.Server.
type pipeListener struct {
	conns  chan net.Conn // size 0: dial waits for Accept
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept waits for the next connection.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept and dial fail.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is a name without meaning.
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "ollama.test" }
