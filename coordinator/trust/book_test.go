package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/identity"
)

// house is a fleet's authority and book on a real ledger, under a clock that the test moves.
type house struct {
	t     *testing.T
	dir   string
	store *ledger.SQLite
	now   time.Time
	book  *Book
}

func newHouse(t *testing.T) *house {
	t.Helper()
	store, err := ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	h := &house{t: t, dir: t.TempDir(), store: store, now: time.Now()}
	h.restart()
	return h
}

func (h *house) restart() {
	h.t.Helper()
	a, err := OpenAuthority(h.dir, "home", func() time.Time { return h.now })
	if err == nil {
		h.book, err = OpenBook(h.t.Context(), a, h.store)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

func request(t testing.TB) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := identity.Request(key)
	if err != nil {
		t.Fatal(err)
	}
	return csr
}

func (h *house) token(uses int) (Token, Kept) {
	h.t.Helper()
	token, err := NewToken([]string{"192.168.1.2:7702"}, h.book.Authority().Fingerprint())
	if err != nil {
		h.t.Fatal(err)
	}
	k, err := h.book.CreateToken(h.t.Context(), token, uses, time.Hour, "")
	if err != nil {
		h.t.Fatal(err)
	}
	return token, k
}

func TestAuthorityLastsAndKeepsItsFingerprint(t *testing.T) {
	h := newHouse(t)
	before := h.book.Authority().Certificate()
	h.restart()
	if !h.book.Authority().Certificate().Equal(before) {
		t.Error("a restart made another authority")
	}
	if err := os.Remove(filepath.Join(h.dir, AuthorityFile)); err != nil { // as after a crash between the two files
		t.Fatal(err)
	}
	h.restart()
	if h.book.Authority().Fingerprint() != identity.FingerprintOf(before) {
		t.Error("another fingerprint")
	}
	if _, err := OpenAuthority(h.dir, "office", nil); apierr.CodeOf(err) != apierr.Conflict {
		t.Errorf("opened for another fleet: %v", err)
	}
	if err := os.Chmod(filepath.Join(h.dir, AuthorityKeyFile), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(h.dir, "home", nil); apierr.CodeOf(err) != apierr.Conflict || len(apierr.As(err).Next) == 0 {
		t.Errorf("a key that others may read: %v", err)
	}
}

func TestLeafLivesNinetyDaysAndIsRenewedAtTwoThirds(t *testing.T) {
	h := newHouse(t)
	p := identity.Peer{Fleet: "home", Role: identity.Coordinator, ID: "desk"}
	dir := t.TempDir()
	i, err := h.book.Authority().Own(dir, p)
	if err != nil {
		t.Fatal(err)
	}
	leaf := i.Leaf()
	if got := leaf.NotAfter.Sub(h.now); got < 90*24*time.Hour-time.Second || got > 90*24*time.Hour {
		t.Errorf("it lives %v", got)
	}
	h.now = h.now.Add(59 * 24 * time.Hour)
	if i, err = h.book.Authority().Own(dir, p); err != nil || !i.Leaf().Equal(leaf) {
		t.Errorf("renewed after 59 days (%v)", err)
	}
	h.now = h.now.Add(2 * 24 * time.Hour)
	if i, err = h.book.Authority().Own(dir, p); err != nil || i.Leaf().Equal(leaf) {
		t.Errorf("not renewed after 61 days (%v)", err)
	}
}

func TestTokenAdmitsAsOftenAsItSays(t *testing.T) {
	h := newHouse(t)
	token, _ := h.token(1)
	var admitted, refused int
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		csr := request(t)
		all.Go(func() {
			_, err := h.book.Spend(t.Context(), token.Secret, Newcomer{ID: id, CSR: csr})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				admitted++
			} else if apierr.CodeOf(err) == apierr.Conflict {
				refused++
			}
		})
	}
	all.Wait()
	if admitted != 1 || refused != 5 || len(h.book.Nodes()) != 1 {
		t.Errorf("one use let %d in and refused %d", admitted, refused)
	}
}

// The answer may be lost on its way: the same machine asks again and takes no second use. Another cannot, nor with its name.
func TestTokenRepeatedAndReplayed(t *testing.T) {
	h := newHouse(t)
	token, _ := h.token(1)
	csr := request(t)
	spend := func(id string, csr []byte) error {
		_, err := h.book.Spend(t.Context(), token.Secret, Newcomer{ID: id, CSR: csr})
		return err
	}
	if err := errors.Join(spend("gpu-1", csr), spend("gpu-1", csr)); err != nil {
		t.Fatal(err)
	}
	h.restart()
	for _, err := range []error{spend("gpu-2", request(t)), spend("gpu-1", request(t)), spend("gpu-2", csr)} {
		if apierr.CodeOf(err) != apierr.Conflict {
			t.Errorf("a replayed token: %v", err)
		}
	}
}

func TestTokenThatIsOver(t *testing.T) {
	h := newHouse(t)
	old, _ := h.token(5)
	gone, k := h.token(5)
	if err := h.book.RevokeToken(t.Context(), k.ID); err != nil {
		t.Fatal(err)
	}
	h.restart()
	if _, err := h.book.Spend(t.Context(), gone.Secret, Newcomer{ID: "a", CSR: request(t)}); apierr.CodeOf(err) != apierr.Conflict {
		t.Errorf("a revoked token: %v", err)
	}
	h.now = h.now.Add(2 * time.Hour)
	_, err := h.book.Spend(t.Context(), old.Secret, Newcomer{ID: "a", CSR: request(t)})
	if apierr.CodeOf(err) != apierr.Conflict || !strings.Contains(err.Error(), "ended at") {
		t.Errorf("an expired token: %v", err)
	}
	h.token(1)
	if n := len(h.book.Tokens()); n != 1 {
		t.Errorf("%d tokens are kept after one was made: the expired one should be forgotten", n)
	}
}

func TestRevokedNodeGetsNothing(t *testing.T) {
	h := newHouse(t)
	csr := request(t)
	leaf, err := h.book.Admit(t.Context(), Newcomer{ID: "gpu-1", Name: "Attic", CSR: csr}, "code")
	if err != nil {
		t.Fatal(err)
	}
	p := identity.Peer{Fleet: "home", Role: identity.Worker, ID: "gpu-1"}
	if err := h.book.Allow(p, leaf); err != nil {
		t.Fatal(err)
	}
	if _, err := h.book.Renew(t.Context(), "gpu-1", csr); err != nil {
		t.Errorf("renewal of a member: %v", err)
	}
	if _, err := h.book.Renew(t.Context(), "gpu-1", request(t)); err == nil {
		t.Error("a certificate for another key was renewed")
	}
	if _, err := h.book.Renew(t.Context(), "gpu-9", csr); err == nil {
		t.Error("an unknown node was renewed")
	}
	if _, err := h.book.Revoke(t.Context(), "Attic"); err != nil {
		t.Fatal(err)
	}
	token, _ := h.token(9)
	for range 2 { // the second time after a restart
		if !h.book.Gone(p, leaf) {
			t.Error("a revoked node is let through")
		}
		if _, err := h.book.Renew(t.Context(), "gpu-1", csr); err == nil {
			t.Error("a revoked node was renewed")
		}
		if _, err := h.book.Spend(t.Context(), token.Secret, Newcomer{ID: "gpu-1", CSR: csr}); err == nil {
			t.Error("a revoked key joined again")
		}
		h.restart()
	}
	again, err := h.book.Spend(t.Context(), token.Secret, Newcomer{ID: "gpu-1", CSR: request(t)})
	if err != nil {
		t.Fatal(err)
	}
	if h.book.Gone(p, again) || !h.book.Gone(p, leaf) {
		t.Error("after joining anew, the new key holds and the revoked one does not")
	}
}

func TestUnknownNodeIsRefused(t *testing.T) {
	h := newHouse(t)
	p := identity.Peer{Fleet: "home", Role: identity.Worker, ID: "ghost"}
	leaf, err := h.book.Authority().Issue(request(t), p)
	if err != nil {
		t.Fatal(err)
	}
	if h.book.Allow(p, leaf) == nil {
		t.Error("a signed machine that is not in the book is let through")
	}
}

// What the ledger did not take does not hold.
func TestNothingHoldsThatWasNotKept(t *testing.T) {
	h := newHouse(t)
	token, _ := h.token(1)
	h.store.Close()
	if _, err := h.book.Spend(t.Context(), token.Secret, Newcomer{ID: "a", CSR: request(t)}); err == nil {
		t.Error("admitted without a ledger")
	}
	if len(h.book.Nodes()) != 0 || h.book.Tokens()[0].Left != 1 {
		t.Error("a failed write changed the book")
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	h := newHouse(t)
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaCSR, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, old)
	if err != nil {
		t.Fatal(err)
	}
	forged := request(t)
	forged[len(forged)-1] ^= 1
	for name, n := range map[string]Newcomer{
		"rsa": {ID: "a", CSR: rsaCSR}, "forged": {ID: "a", CSR: forged}, "empty": {ID: "a"}, "long": {ID: "a", CSR: make([]byte, MaxRequest+1)},
		"id": {ID: "../a", CSR: request(t)}, "name": {ID: "a", Name: "\x1b[2J", CSR: request(t)}, "long name": {ID: "a", Name: strings.Repeat("x", 129), CSR: request(t)},
	} {
		if _, err := h.book.Admit(t.Context(), n, ""); apierr.CodeOf(err) != apierr.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add(request(f))
	f.Add([]byte{0x30, 0x80})
	f.Fuzz(func(t *testing.T, der []byte) {
		key, err := keyOfRequest(der)
		if err == nil && key.Curve != elliptic.P256() {
			t.Errorf("a key of %v", key.Curve)
		}
		if err != nil && apierr.CodeOf(err) != apierr.InvalidArgument {
			t.Errorf("%v", err)
		}
	})
}
