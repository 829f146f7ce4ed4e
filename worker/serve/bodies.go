package serve

import (
	"container/list"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// bodyCacheBytes bounds the shared texts that are kept, so that a batch sends its context once.
const bodyCacheBytes = 64 << 20

// bodyCache keeps the texts used last. Nothing depends on what it holds: a text that it lacks is asked for.
type bodyCache struct {
	limit int

	mu    sync.Mutex
	size  int
	order *list.List // of cached, newest first
	byKey map[string]*list.Element
}

type cached struct{ sha, text string }

func newBodyCache(limit int) *bodyCache {
	return &bodyCache{limit: limit, order: list.New(), byKey: map[string]*list.Element{}}
}

// one resolves a body that may be absent; nil when it is.
func (s *Server) one(b *workerv1.Body) (*string, error) {
	texts, err := s.bodies.texts(b)
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	return &texts[0], nil
}

// texts resolves bodies to texts, and images to their bytes. A body whose text is not what its hash says is InvalidArgument; those that came by hash
// and are not here are MissingArtifact, all of them in Details.
func (c *bodyCache) texts(bodies ...*workerv1.Body) ([]string, error) {
	out := make([]string, 0, len(bodies))
	var missing []string
	for _, b := range bodies {
		if b == nil {
			continue
		}
		text, ok := b.GetText(), b.Text != nil
		if b.Data != nil {
			text, ok = string(b.GetData()), true
		}
		if ok {
			if sum := sha256.Sum256([]byte(text)); hex.EncodeToString(sum[:]) != b.GetSha256() {
				return nil, apierr.New(apierr.InvalidArgument, "the body of %s is not what its hash says", b.GetName())
			}
			c.put(b.GetSha256(), text)
		} else if text, ok = c.find(b.GetSha256()); !ok {
			missing = append(missing, b.GetSha256())
		}
		out = append(out, text)
	}
	if len(missing) > 0 {
		e := apierr.New(apierr.MissingArtifact, "%d bodies came by hash and are not here", len(missing))
		e.Details = missing
		return nil, e
	}
	return out, nil
}

func (c *bodyCache) find(sha string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[sha]
	if !ok {
		return "", false
	}
	c.order.MoveToFront(e)
	return e.Value.(cached).text, true
}

func (c *bodyCache) put(sha, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[sha]; ok {
		c.order.MoveToFront(e)
		return
	}
	c.byKey[sha] = c.order.PushFront(cached{sha, text})
	for c.size += len(text); c.size > c.limit && c.order.Len() > 1; {
		old := c.order.Remove(c.order.Back()).(cached)
		delete(c.byKey, old.sha)
		c.size -= len(old.text)
	}
}
