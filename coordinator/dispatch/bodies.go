package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// BodyLimit is how much text and images a call may carry in all, bytes: far beyond any context, and within one gRPC message.
const BodyLimit = 16 << 20

// ref is how a request names a stored body, see docs/requests.md.
type ref struct {
	Ref  string `json:"ref"`
	Name string `json:"name"`
}

// body makes a worker body of what a request holds: a string is itself, a ref is opened, any other value, null too, is sent
// as its canonical JSON. What is not there at all has no body.
func (d *Dispatcher) body(ctx context.Context, raw json.RawMessage) (*workerv1.Body, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return nil, nil
	}
	if raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return nil, err
		}
		return value("", s), nil
	}
	var r ref
	if raw[0] == '{' && json.Unmarshal(raw, &r) == nil && len(r.Ref) == 64 {
		return d.open(ctx, r)
	}
	return value("", string(raw)), nil
}

func value(name, text string) *workerv1.Body {
	return &workerv1.Body{Sha256: ledger.Digest([]byte(text)), Name: name, Bytes: uint64(len(text)), Text: &text}
}

// open is a stored body: a text, or an image.
func (d *Dispatcher) open(ctx context.Context, r ref) (*workerv1.Body, error) {
	f, a, err := d.o.Store.OpenArtifact(ctx, r.Ref)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.NotFound, "open %s", called(r))
	}
	defer f.Close()
	if a.Size > BodyLimit {
		return nil, tooLarge(called(r), a.Size)
	}
	data, err := io.ReadAll(f)
	switch {
	case err != nil:
		return nil, apierr.Wrap(err, apierr.LedgerCorrupt, "read %s", called(r))
	case params.Image(data):
		return shownAs(r.Name, data), nil
	case !utf8.Valid(data):
		return nil, apierr.New(apierr.InvalidArgument, "%s is neither text in UTF-8 nor an image", called(r)).
			WithNext("give text, or PNG, JPEG, WebP or GIF: models are given nothing else")
	}
	return value(r.Name, string(data)), nil
}

// called is how people know a body.
func called(r ref) string {
	if r.Name != "" {
		return r.Name
	}
	return "artifact " + r.Ref[:12]
}

func tooLarge(what string, size int64) error {
	return apierr.New(apierr.InvalidArgument, "%s has %d bytes, a call carries at most %d", what, size, BodyLimit).WithNext("split the document")
}

// within refuses a call whose texts are too large together: bodies, and so much beside them.
func within(sum int64, bodies ...*workerv1.Body) error {
	for _, b := range bodies {
		sum += int64(b.GetBytes())
	}
	if sum > BodyLimit {
		return tooLarge("the call in all", sum)
	}
	return nil
}

func textBytes(bodies []*workerv1.Body) (n int64) {
	for _, b := range bodies {
		n += int64(len(b.GetText()))
	}
	return n
}

// sentBodies remembers which shared texts and images a node was sent, so that a batch sends its context once to each. It is only a
// guess: a worker that lacks one says so.
type sentBodies struct {
	mu    sync.Mutex
	nodes map[string]map[string]bool
}

// byHash drops the bodies that the node has had already, and notes the others as sent.
func (s *sentBodies) byHash(node string, bodies []*workerv1.Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodes == nil {
		s.nodes = map[string]map[string]bool{}
	}
	if s.nodes[node] == nil || len(s.nodes[node]) > 1024 {
		s.nodes[node] = map[string]bool{}
	}
	for _, b := range bodies {
		if s.nodes[node][b.Sha256] {
			b.Text, b.Data = nil, nil
		}
		s.nodes[node][b.Sha256] = true
	}
}

func (s *sentBodies) has(node, sha string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[node][sha]
}

func (s *sentBodies) forget(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.nodes, node)
}
