package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// BodyLimit is how much text a call may carry in all, bytes: far beyond any context, and within one gRPC message.
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

func (d *Dispatcher) open(ctx context.Context, r ref) (*workerv1.Body, error) {
	f, a, err := d.o.Store.OpenArtifact(ctx, r.Ref)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.NotFound, "open %s", called(r))
	}
	defer f.Close()
	if a.Size > BodyLimit {
		return nil, tooLarge(called(r), a.Size)
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.LedgerCorrupt, "read %s", called(r))
	}
	if !utf8.Valid(text) {
		return nil, apierr.New(apierr.InvalidArgument, "%s is not text in UTF-8", called(r)).WithNext("give text: models read nothing else")
	}
	return value(r.Name, string(text)), nil
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
		return tooLarge("the call's text", sum)
	}
	return nil
}

func textBytes(bodies []*workerv1.Body) (n int64) {
	for _, b := range bodies {
		n += int64(len(b.GetText()))
	}
	return n
}

// sentBodies remembers which shared texts a node was sent, so that a batch sends its context once to each. It is only a
// guess: a worker that lacks one says so.
type sentBodies struct {
	mu    sync.Mutex
	nodes map[string]map[string]bool
}

// byHash drops the texts that the node has had already, and notes the others as sent.
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
			b.Text = nil
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
