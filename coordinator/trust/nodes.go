package trust

import (
	"context"
	"crypto/x509"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/identity"
)

// Node is a machine that was let in.
type Node struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"` // for people; not unique
	Key         string    `json:"key"`  // fingerprint of its key, hex
	Joined      time.Time `json:"joined"`
	By          string    `json:"by"`               // how it came in
	Until       time.Time `json:"until"`            // end of the last certificate that it was given
	Revoked     time.Time `json:"revoked,omitzero"` // zero: it is not
	RevokedKeys []string  `json:"revoked_keys,omitempty"`
}

// revoked says whether a key of the node was.
func (n Node) revoked(key string) bool { return slices.Contains(n.RevokedKeys, key) }

// Nodes returns all, revoked ones too, by name and id.
func (b *Book) Nodes() []Node {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Node
	for _, n := range b.nodes {
		out = append(out, n)
	}
	slices.SortFunc(out, func(x, y Node) int {
		if c := strings.Compare(x.Name, y.Name); c != 0 {
			return c
		}
		return strings.Compare(x.ID, y.ID)
	})
	return out
}

// Allow is what identity.Expect asks at every handshake: only a known node with the key that it joined with is let through.
func (b *Book) Allow(p identity.Peer, c *x509.Certificate) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, known := b.nodes[p.ID]
	key := identity.FingerprintOf(c).String()
	switch {
	case known && n.revoked(key):
		return apierr.New(apierr.Conflict, "it was revoked").WithNext("loopkeeper nodes list  # on the coordinator")
	case !known || n.Key != key:
		return apierr.New(apierr.Conflict, "the coordinator does not know it").WithNext("loopkeeper worker join  # on that machine")
	}
	return nil
}

// Revoke takes a node's rights for good: its key is refused from now on. The caller then drops its connections (Gone).
// which is an id, or a name that one node has.
func (b *Book) Revoke(ctx context.Context, which string) (Node, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.find(which)
	if err != nil || !n.Revoked.IsZero() {
		return n, err
	}
	n.Revoked = b.authority.now().UTC()
	n.RevokedKeys = append(slices.Clone(n.RevokedKeys), n.Key)
	return n, b.write(ctx, change{nodes: map[string]Node{n.ID: n}})
}

// Gone says about a connection whether its peer may stay; it is what identity.Links.Drop asks after Revoke.
func (b *Book) Gone(p identity.Peer, c *x509.Certificate) bool { return b.Allow(p, c) != nil }

// Rename changes what people call a node.
func (b *Book) Rename(ctx context.Context, which, name string) (Node, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.find(which)
	if err != nil {
		return Node{}, err
	}
	if name == "" || len(name) > maxName || !printable(name) {
		return Node{}, apierr.New(apierr.InvalidArgument, "a name has 1 to %d bytes that can be printed", maxName)
	}
	n.Name = name
	return n, b.write(ctx, change{nodes: map[string]Node{n.ID: n}})
}

// find returns the node with that id, or the only one with that name; mu is held.
func (b *Book) find(which string) (Node, error) {
	if n, ok := b.nodes[which]; ok {
		return n, nil
	}
	var found []Node
	for _, n := range b.nodes {
		if n.Name == which {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Node{}, apierr.New(apierr.NotFound, "there is no node %.80q", which).WithNext("loopkeeper nodes list")
	default:
		return Node{}, apierr.New(apierr.InvalidArgument, "%d nodes have the name %.80q", len(found), which).WithNext("loopkeeper nodes list  # and name the id")
	}
}

// printable keeps a terminal from being told what to do by a machine's name.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}
