package enrol

import (
	"crypto/tls"
	"encoding/hex"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/identity"
)

func TestJoinByToken(t *testing.T) {
	g := newGate(t, 0)
	// A dead address before the right one is passed over.
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	token := g.token(dead.Addr().String(), g.addr)
	m, dir := machine(t, "gpu-1")
	a, err := Join(t.Context(), token, m)
	if err != nil {
		t.Fatal(err)
	}
	i, err := identity.Install(dir, m.Key, a.Leaf, a.Authority)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.book.Allow(i.Peer(), a.Leaf); err != nil || i.Peer().ID != "gpu-1" {
		t.Errorf("%v: %v", i.Peer(), err)
	}
	other, _ := machine(t, "gpu-2")
	if _, err := Join(t.Context(), token, other); apierr.CodeOf(err) != apierr.Conflict || len(apierr.As(err).Next) == 0 {
		t.Errorf("a used-up token: %v", err)
	}
	if said := g.log.String(); !strings.Contains(said, string(identity.TokenRefused)) || strings.Contains(said, token.Text()) ||
		strings.Contains(said, hex.EncodeToString(token.Secret.Bytes())) {
		t.Errorf("the log:\n%s", said)
	}
}

// Another coordinator at the address, as a spoofed advertisement would have it, learns no secret: the pin comes first.
func TestManInTheMiddleOfATokenIsTold(t *testing.T) {
	real, between := newGate(t, 0), newGate(t, 0)
	token := real.token(between.addr)
	m, _ := machine(t, "gpu-1")
	_, err := Join(t.Context(), token, m)
	if identity.ReasonOf(err) != identity.OtherAuthority || len(apierr.As(err).Next) == 0 {
		t.Errorf("told: %v", err)
	}
	if len(between.book.Nodes()) != 0 || strings.Contains(between.log.String(), string(identity.TokenRefused)) {
		t.Error("the one in between was sent the secret")
	}
	// With the right address named too, the machine still joins.
	token.Addresses = append(token.Addresses, real.addr)
	if _, err := Join(t.Context(), token, m); err != nil {
		t.Errorf("the second address: %v", err)
	}
}

func TestOldTLSAndClearTextAreRefused(t *testing.T) {
	g := newGate(t, 0)
	if conn, err := tls.Dial("tcp", g.addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}); err == nil {
		conn.Close()
		t.Error("TLS 1.2 was accepted")
	}
	conn, err := net.Dial("tcp", g.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	gone(t, conn)
	for _, want := range []identity.Reason{identity.OldTLS, identity.ClearText} {
		g.log.await(t, string(want))
	}
}

// gone waits until the other side has closed.
func gone(t *testing.T, conn net.Conn) {
	t.Helper()
	conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		if _, err := conn.Read(make([]byte, 4096)); err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				t.Fatal("the connection stays open")
			}
			return
		}
	}
}

// A message over the limit is refused, and the service goes on.
func TestOversizedMessage(t *testing.T) {
	g := newGate(t, 0)
	token := g.token(g.addr)
	m, _ := machine(t, "gpu-1")
	big := m
	big.Name = strings.Repeat("x", 1<<20)
	if _, err := Join(t.Context(), token, big); err == nil {
		t.Error("a megabyte of name was taken")
	}
	if _, err := Join(t.Context(), token, m); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// Half-open connections, and those that drip a valid start of HTTP/2 and then nothing, end by themselves; a machine joins
// after 500 of them.
func TestStrangersCostTheirConnectionOnly(t *testing.T) {
	g := newGate(t, 400*time.Millisecond)
	var all []net.Conn
	for i := range 500 {
		conn, err := net.Dial("tcp", g.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		all = append(all, conn)
		if i >= mostFromOneHost/2 {
			continue // half open
		}
		drip := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
		if err := drip.Handshake(); err != nil {
			t.Fatal(err)
		}
		drip.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")) // the preface and empty settings
	}
	for _, conn := range all {
		gone(t, conn)
	}
	m, _ := machine(t, "gpu-1")
	if _, err := Join(t.Context(), g.token(g.addr), m); err != nil {
		t.Errorf("a machine: %v", err)
	}
	if n := strings.Count(g.log.String(), "refused a peer"); n > 4 || n == 0 {
		t.Errorf("%d lines about one host:\n%s", n, g.log.String())
	}
}
