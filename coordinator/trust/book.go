package trust

import (
	"context"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/identity"
)

// Memory keeps the book over restarts; a ledger.Store is one.
type Memory interface {
	Meta(ctx context.Context, prefix string) (map[string]json.RawMessage, error)
	Append(ctx context.Context, c ledger.Commit) error
}

// The book's keys in the ledger's meta.
const (
	nodePrefix  = "trust/node/"
	tokenPrefix = "trust/token/"
)

// Book is who was let in, who was revoked, and which tokens let others in. Every change is in the ledger before it holds.
// It may be used by many goroutines.
type Book struct {
	authority *Authority
	memory    Memory

	mu     sync.Mutex // held over writing, which orders the changes; Allow takes it, too, and waits for one commit at most
	nodes  map[string]Node
	tokens map[string]Kept
}

// OpenBook reads the book. A row that cannot be read is an error: it could be a revocation.
func OpenBook(ctx context.Context, a *Authority, m Memory) (*Book, error) {
	b := &Book{authority: a, memory: m, nodes: map[string]Node{}, tokens: map[string]Kept{}}
	if err := read(ctx, m, nodePrefix, b.nodes); err != nil {
		return nil, err
	}
	return b, read(ctx, m, tokenPrefix, b.tokens)
}

func read[T any](ctx context.Context, m Memory, prefix string, into map[string]T) error {
	rows, err := m.Meta(ctx, prefix)
	if err != nil {
		return apierr.Wrap(err, apierr.Unavailable, "read who is trusted")
	}
	for key, raw := range rows {
		var v T
		if err := json.Unmarshal(raw, &v); err != nil {
			return apierr.Wrap(err, apierr.LedgerCorrupt, "read who is trusted: %s", key).WithNext("loopkeeper verify")
		}
		into[strings.TrimPrefix(key, prefix)] = v
	}
	return nil
}

// Authority is the one that signs for the book.
func (b *Book) Authority() *Authority { return b.authority }

// change is what one decision writes; nil removes.
type change struct {
	nodes  map[string]Node
	tokens map[string]*Kept
}

// write makes a change hold, in the ledger first; mu is held. Once begun it is not cancelled: half known is not known.
func (b *Book) write(ctx context.Context, c change) error {
	rows := map[string]json.RawMessage{}
	for id, n := range c.nodes {
		raw, err := json.Marshal(n)
		if err != nil {
			return apierr.Wrap(err, apierr.Internal, "encode a node")
		}
		rows[nodePrefix+id] = raw
	}
	for id, t := range c.tokens {
		rows[tokenPrefix+id] = nil
		if t == nil {
			continue
		}
		raw, err := json.Marshal(t)
		if err != nil {
			return apierr.Wrap(err, apierr.Internal, "encode a token")
		}
		rows[tokenPrefix+id] = raw
	}
	if err := b.memory.Append(context.WithoutCancel(ctx), ledger.Commit{Meta: rows}); err != nil {
		return apierr.Wrap(err, apierr.Unavailable, "keep who is trusted")
	}
	maps.Copy(b.nodes, c.nodes)
	for id, t := range c.tokens {
		delete(b.tokens, id)
		if t != nil {
			b.tokens[id] = *t
		}
	}
	return nil
}

// Newcomer is a machine that asks to be let in.
type Newcomer struct {
	ID   string // node id
	Name string // for people, at most 128 bytes
	CSR  []byte // PKCS #10, DER
}

// maxName is the longest name of a machine, bytes.
const maxName = 128

// Check says what is wrong with the newcomer's id or name; the error is an apierr.InvalidArgument.
func (n Newcomer) Check() error {
	if len(n.Name) > maxName || !printable(n.Name) {
		return apierr.New(apierr.InvalidArgument, "the machine's name is longer than %d bytes or holds what cannot be printed", maxName)
	}
	return identity.Peer{Fleet: "any", Role: identity.Worker, ID: n.ID}.Check()
}

// admitted signs for a newcomer and returns its row, unless the book speaks against it; mu is held.
func (b *Book) admitted(n Newcomer, by string) (Node, *x509.Certificate, error) {
	if err := n.Check(); err != nil {
		return Node{}, nil, err
	}
	leaf, err := b.authority.Issue(n.CSR, identity.Peer{Fleet: b.authority.fleet, Role: identity.Worker, ID: n.ID})
	if err != nil {
		return Node{}, nil, err
	}
	print := identity.FingerprintOf(leaf)
	key := hex.EncodeToString(print[:])
	row := Node{ID: n.ID, Name: n.Name, Key: key, Joined: b.authority.now().UTC(), By: by, Until: leaf.NotAfter}
	if row.Name == "" {
		row.Name = n.ID
	}
	old, known := b.nodes[n.ID]
	switch {
	case !known:
		return row, leaf, nil
	case old.revoked(key):
		return Node{}, nil, apierr.New(apierr.Conflict, "%s was revoked at %s", n.ID, old.Revoked.Format(time.RFC3339)).
			WithNext("delete the identity in the machine's data folder and join again, when it may come back")
	case old.Revoked.IsZero() && old.Key != key:
		return Node{}, nil, apierr.New(apierr.Conflict, "another machine is known as %s", n.ID).
			WithNext("loopkeeper nodes revoke "+n.ID+"  # on the coordinator, when that one is gone", "delete node-id in this machine's data folder: it then gets another id")
	}
	row.RevokedKeys = old.RevokedKeys
	return row, leaf, nil
}

// Admit lets a machine in that a person vouches for; by says how, for `nodes list`.
func (b *Book) Admit(ctx context.Context, n Newcomer, by string) (*x509.Certificate, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	row, leaf, err := b.admitted(n, by)
	if err != nil {
		return nil, err
	}
	return leaf, b.write(ctx, change{nodes: map[string]Node{row.ID: row}})
}

// Renew signs the next certificate of a node that is known and not revoked, for the key that it has.
func (b *Book) Renew(ctx context.Context, id string, csr []byte) (*x509.Certificate, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.nodes[id]
	row, leaf, err := b.admitted(Newcomer{ID: id, Name: old.Name, CSR: csr}, old.By)
	switch {
	case err != nil:
		return nil, err
	case old.Key != row.Key || !old.Revoked.IsZero():
		return nil, apierr.New(apierr.Conflict, "%s is not a node of this fleet, or was revoked", id)
	}
	row.Joined = old.Joined
	return leaf, b.write(ctx, change{nodes: map[string]Node{id: row}})
}
