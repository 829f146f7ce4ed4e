package trust

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// maxTokens is how many a book keeps at once.
const maxTokens = 256

// Kept is what the book keeps of a token: enough to recognise its secret, and not the secret.
type Kept struct {
	ID      string    `json:"id"`   // for people, says nothing about the secret
	Hash    []byte    `json:"hash"` // SHA-256 of the secret; 128 random bits need no slower one
	Note    string    `json:"note,omitempty"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires"`
	Left    int       `json:"left"` // uses
}

// CreateToken has the book admit whoever shows t, uses times at most and not after it expires. It forgets expired tokens.
func (b *Book) CreateToken(ctx context.Context, t Token, uses int, life time.Duration, note string) (Kept, error) {
	if uses < 1 || life <= 0 || len(note) > maxName || !printable(note) {
		return Kept{}, apierr.New(apierr.InvalidArgument, "a token has at least one use, ends in the future, and its note has at most %d bytes", maxName)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.authority.now().UTC()
	rows := map[string]*Kept{}
	for id, k := range b.tokens {
		if now.After(k.Expires) {
			rows[id] = nil
		}
	}
	if len(b.tokens)-len(rows) >= maxTokens {
		return Kept{}, apierr.New(apierr.Conflict, "there are %d tokens already", maxTokens).WithNext("loopkeeper tokens revoke ID")
	}
	k := Kept{ID: hex.EncodeToString(randomBytes(4)), Hash: hash(t.Secret), Note: note, Made: now, Expires: now.Add(life), Left: uses}
	rows[k.ID] = &k
	return k, b.write(ctx, change{tokens: rows})
}

func hash(s Secret) []byte {
	sum := sha256.Sum256(s.b[:])
	return sum[:]
}

// Tokens returns all that were made and not revoked, the used-up and expired ones too, the newest first.
func (b *Book) Tokens() []Kept {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Kept
	for _, k := range b.tokens {
		out = append(out, k)
	}
	slices.SortFunc(out, func(x, y Kept) int { return y.Made.Compare(x.Made) })
	return out
}

// RevokeToken makes a token admit nobody any more. Those whom it admitted stay.
func (b *Book) RevokeToken(ctx context.Context, id string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.tokens[id]; !ok {
		return apierr.New(apierr.NotFound, "there is no token %.80q", id).WithNext("loopkeeper tokens list")
	}
	return b.write(ctx, change{tokens: map[string]*Kept{id: nil}})
}

// Spend lets a machine in by a token's secret. The use and the node are one commit. The same machine with the same key may
// repeat it, in case the answer was lost, and that takes no use.
func (b *Book) Spend(ctx context.Context, s Secret, n Newcomer) (*x509.Certificate, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k, ok := b.recognise(s)
	switch {
	case !ok:
		return nil, apierr.New(apierr.Conflict, "the token is unknown here, or was revoked").WithNext("loopkeeper tokens create  # on the coordinator")
	case b.authority.now().After(k.Expires):
		return nil, apierr.New(apierr.Conflict, "the token ended at %s; the coordinator's clock says %s", k.Expires.Format(time.RFC3339),
			b.authority.now().UTC().Format(time.RFC3339)).WithNext("loopkeeper tokens create  # on the coordinator")
	}
	by := "token " + k.ID
	row, leaf, err := b.admitted(n, by)
	if err != nil {
		return nil, err
	}
	c := change{nodes: map[string]Node{row.ID: row}}
	if old := b.nodes[n.ID]; old.Key != row.Key || old.By != by {
		if k.Left == 0 {
			return nil, apierr.New(apierr.Conflict, "the token is used up").WithNext("loopkeeper tokens create  # on the coordinator")
		}
		k.Left--
		c.tokens = map[string]*Kept{k.ID: &k}
	}
	return leaf, b.write(ctx, c)
}

// recognise finds the token of a secret and takes as long for one as for another; mu is held.
func (b *Book) recognise(s Secret) (found Kept, ok bool) {
	h := hash(s)
	for _, k := range b.tokens {
		if subtle.ConstantTimeCompare(k.Hash, h) == 1 {
			found, ok = k, true
		}
	}
	return found, ok
}
