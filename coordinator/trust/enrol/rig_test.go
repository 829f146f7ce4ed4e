package enrol

import (
	"bytes"
	"crypto/ecdsa"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/trust"
	"github.com/loopkeeper/loopkeeper/proto/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines collects a log.
type lines struct {
	mu    sync.Mutex
	b     bytes.Buffer
	wrote chan struct{} // capacity one: something was written
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.wrote <- struct{}{}:
	default:
	}
	return l.b.Write(b)
}

// await waits until the log says a text: a refusal is noted after its connection is closed.
func (l *lines) await(t *testing.T, want string) {
	t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for !strings.Contains(l.String(), want) {
		select {
		case <-l.wrote:
		case <-late.C:
			t.Errorf("the log does not say %q:\n%s", want, l.String())
			return
		}
	}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// gate is an enrolment service on a real socket, with a ledger of its own.
type gate struct {
	*Server
	t    *testing.T
	book *trust.Book
	addr string
	log  *lines
}

func newGate(t *testing.T, life time.Duration) *gate {
	t.Helper()
	store, err := ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	a, err := trust.OpenAuthority(t.TempDir(), "home", nil)
	if err != nil {
		t.Fatal(err)
	}
	book, err := trust.OpenBook(t.Context(), a, store)
	if err != nil {
		t.Fatal(err)
	}
	self, err := a.Own(t.TempDir(), identity.Peer{Fleet: "home", Role: identity.Enrolment, ID: "desk"})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{t: t, book: book, addr: l.Addr().String(), log: &lines{wrote: make(chan struct{}, 1)}}
	log := slog.New(slog.NewTextHandler(g.log, nil))
	g.Server = Start(Options{Book: book, Self: self, Listener: l, Refusals: identity.NewRefusals(log, nil), Log: log, Life: life})
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
		store.Close()
	})
	return g
}

func (g *gate) token(addrs ...string) trust.Token {
	g.t.Helper()
	token, err := trust.NewToken(addrs, g.book.Authority().Fingerprint())
	if err == nil {
		_, err = g.book.CreateToken(g.t.Context(), token, 1, time.Hour, "")
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return token
}

func machine(t *testing.T, id string) (Machine, string) {
	t.Helper()
	dir := t.TempDir()
	return Machine{Key: keyIn(t, dir), ID: id, Name: "Machine " + id}, dir
}

func keyIn(t *testing.T, dir string) *ecdsa.PrivateKey {
	t.Helper()
	key, err := identity.KeyAt(filepath.Join(dir, identity.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
