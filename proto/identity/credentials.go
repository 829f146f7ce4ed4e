package identity

import (
	"context"
	"crypto/x509"
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Links are the connections with verified peers, so that those of a revoked one can be closed. The zero value is ready.
type Links struct {
	mu    sync.Mutex
	conns map[*link]struct{}
}

// link is one such connection.
type link struct {
	net.Conn
	links  *Links
	peer   Peer
	leaf   *x509.Certificate
	broken func(error) // told about what the other side says when it refuses; nil on the listening side
}

// Drop closes every connection with a peer that gone names and returns how many those were.
func (l *Links) Drop(gone func(Peer, *x509.Certificate) bool) int {
	l.mu.Lock()
	var found []*link
	for c := range l.conns {
		if gone(c.peer, c.leaf) {
			found = append(found, c)
		}
	}
	l.mu.Unlock()
	for _, c := range found {
		c.Close() // an error means that it is closed already
	}
	return len(found)
}

func (l *Links) add(c *link) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		l.conns = map[*link]struct{}{}
	}
	l.conns[c] = struct{}{}
}

// Close implements net.Conn.
func (c *link) Close() error {
	c.links.mu.Lock()
	delete(c.links.conns, c)
	c.links.mu.Unlock()
	return c.Conn.Close()
}

// Read implements net.Conn. In TLS 1.3 the side that dials learns by its first read that it was refused.
func (c *link) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	var op *net.OpError
	if c.broken != nil && errors.As(err, &op) && op.Op == "remote error" {
		err = apierr.Wrap(err, apierr.Conflict, "the other side refuses this machine").
			WithNext("look into the log of the other machine: it says why, with this machine's address")
		c.broken(err)
	}
	return n, err
}

// Credentials are mutual TLS for gRPC: verified, noted when refused, and counted in Links. Make one for each connection that
// is dialled, or one for a listener.
type Credentials struct {
	inner    credentials.TransportCredentials
	expect   Expect
	links    *Links
	refusals *Refusals

	mu   sync.Mutex
	last error // why the last handshake failed
}

// ServerCredentials are those of a listener.
func ServerCredentials(self *Identity, e Expect, links *Links, refusals *Refusals) *Credentials {
	return &Credentials{inner: credentials.NewTLS(ServerConfig(self, e)), expect: e, links: links, refusals: refusals}
}

// ClientCredentials are those of one dialled address.
func ClientCredentials(self *Identity, e Expect, links *Links, refusals *Refusals) *Credentials {
	return &Credentials{inner: credentials.NewTLS(ClientConfig(self, e)), expect: e, links: links, refusals: refusals}
}

// Explain returns why the last handshake failed, with its code and advice, which gRPC makes a bare text of; err itself when
// none did.
func (c *Credentials) Explain(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.last != nil {
		return c.last
	}
	return err
}

func (c *Credentials) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last = err
}

// ServerHandshake implements credentials.TransportCredentials.
func (c *Credentials) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.inner.ServerHandshake(raw)
	if err == nil {
		conn, err = c.keep(conn, info, nil)
	}
	if err != nil {
		c.refusals.Note(raw.RemoteAddr(), err)
		return nil, nil, err
	}
	return conn, info, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (c *Credentials) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.inner.ClientHandshake(ctx, authority, raw)
	if err == nil {
		conn, err = c.keep(conn, info, c.failed)
	}
	c.failed(err)
	var refusal *Refusal
	if errors.As(err, &refusal) { // anything else is a peer that is not there
		c.refusals.Note(raw.RemoteAddr(), err)
	}
	if err != nil {
		return nil, nil, err
	}
	return conn, info, nil
}

// keep counts a connection in. Whoever was revoked between the handshake and here is refused here: Drop did not see it.
func (c *Credentials) keep(conn net.Conn, info credentials.AuthInfo, broken func(error)) (net.Conn, error) {
	state := info.(credentials.TLSInfo).State // what NewTLS returns
	leaf := state.PeerCertificates[0]         // verified
	peer, err := PeerOf(leaf)
	if err != nil {
		return nil, err
	}
	l := &link{Conn: conn, links: c.links, peer: peer, leaf: leaf, broken: broken}
	c.links.add(l)
	if c.expect.Allow != nil {
		if err := c.expect.Allow(peer, leaf); err != nil {
			l.Close()
			return nil, NewRefusal(NotAllowed, apierr.Wrap(err, apierr.Conflict, "%s is refused", peer))
		}
	}
	return l, nil
}

// Info implements credentials.TransportCredentials.
func (c *Credentials) Info() credentials.ProtocolInfo { return c.inner.Info() }

// Clone implements credentials.TransportCredentials. What the copy learns, the original can explain.
func (c *Credentials) Clone() credentials.TransportCredentials { return c }

// OverrideServerName implements credentials.TransportCredentials; host names mean nothing here.
func (c *Credentials) OverrideServerName(string) error { return nil }

var _ credentials.TransportCredentials = (*Credentials)(nil)
