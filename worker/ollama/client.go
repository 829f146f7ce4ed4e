package ollama

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ollama/ollama/api"
	"github.com/ollama/ollama/types/model"
)

// simulatedServer is how cmd/fakeollama names itself in the Server header of every answer.
const simulatedServer = "fakeollama"

// DefaultKeepAlive is how long the server keeps a model after its last request: long enough to be renewed at leisure, short
// enough that the card is free soon after we died. Ollama's keep_alive is sticky, so every request of ours says the same.
const DefaultKeepAlive = 10 * time.Minute

// Options says which server, and over what.
type Options struct {
	BaseURL   string            // such as http://127.0.0.1:11434; required
	Transport http.RoundTripper // nil: an own one that ignores proxy settings
	KeepAlive time.Duration     // how long a model stays after its last request; 0: DefaultKeepAlive
}

// Client talks to one Ollama server. It is safe for concurrent use. No call has a time limit of its own: the context
// of each call is the limit, since loading a model can take minutes and an answer hours.
type Client struct {
	base      *url.URL
	api       *api.Client
	transport http.RoundTripper
	keep      api.Duration
	simulated atomic.Bool

	mu    sync.Mutex
	facts map[string]Facts // by digest; a digest's content never changes
}

// New makes a client; it does not connect.
func New(o Options) (*Client, error) {
	base, err := url.Parse(o.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("ollama address: %w", err)
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("ollama address %q: want http://host:port", o.BaseURL)
	}
	transport := o.Transport
	if transport == nil {
		dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
		transport = &http.Transport{DialContext: dialer.DialContext, IdleConnTimeout: 90 * time.Second}
	}
	c := &Client{base: base, transport: transport, keep: api.Duration{Duration: cmp.Or(o.KeepAlive, DefaultKeepAlive)}, facts: map[string]Facts{}}
	c.api = api.NewClient(base, &http.Client{Transport: observer{c}})
	return c, nil
}

// observer notes how the server names itself; everything else passes through.
type observer struct{ c *Client }

func (o observer) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.c.transport.RoundTrip(req)
	if err == nil {
		o.c.simulated.Store(strings.HasPrefix(resp.Header.Get("Server"), simulatedServer))
	}
	return resp, err
}

// BaseURL returns the server's address as given.
func (c *Client) BaseURL() string { return c.base.String() }

// Close drops idle connections. Calls in flight are not touched: their contexts end them.
func (c *Client) Close() {
	if t, ok := c.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// Server is who answered.
type Server struct {
	Version   string // such as 0.17.4
	Simulated bool   // cmd/fakeollama, not a real Ollama
}

// Server asks for the version; it is the cheapest sign of life.
func (c *Client) Server(ctx context.Context) (Server, error) {
	version, err := c.api.Version(ctx)
	if err != nil {
		return Server{}, classify(ctx, "ask the version", err)
	}
	return Server{Version: version, Simulated: c.simulated.Load()}, nil
}

// Name brings a model's name to the form that Ollama lists: llama3 is llama3:latest. A name that is none comes back as it is.
func Name(name string) string {
	if n := model.ParseName(name); n.IsValid() {
		return n.DisplayShortest()
	}
	return name
}
