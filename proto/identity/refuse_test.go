package identity

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func TestOneLineForOneHostAndReason(t *testing.T) {
	var log lines
	now := time.Unix(1e9, 0)
	r := NewRefusals(log.logger(), func() time.Time { return now })
	count := func() int { return strings.Count(log.String(), "refused a peer") }
	at := func(i int) net.Addr {
		return &net.TCPAddr{IP: net.IPv4(10, 0, byte(i>>8), byte(i)), Port: 1000 + i%5000}
	}
	for i := range 100 {
		r.Note(&net.TCPAddr{IP: net.IPv4(10, 9, 9, 9), Port: i}, tooMany)
	}
	if count() != 1 {
		t.Fatalf("%d lines for one host:\n%s", count(), log.String())
	}
	for i := range 5000 {
		r.Note(at(i), errors.New(strings.Repeat("x", 10000)))
	}
	if count() != sayAtMost || len(log.String()) > 20000 {
		t.Errorf("%d lines, %d bytes in one minute", count(), len(log.String()))
	}
	now = now.Add(time.Minute)
	r.Note(&net.TCPAddr{IP: net.IPv4(10, 8, 8, 8)}, tooMany)
	if want := fmt.Sprintf("others_refused=%d", 5000-(sayAtMost-1)); !strings.Contains(log.String(), want) {
		t.Errorf("no %s", want)
	}
	for i := range 100000 {
		now = now.Add(time.Second)
		r.Note(at(i), tooMany)
	}
	if len(r.said) > rememberMost {
		t.Errorf("%d pairs are remembered", len(r.said))
	}
}

// grpcRig is a gRPC server with our credentials on a real socket.
func grpcRig(t *testing.T, self *Identity, e Expect, log *lines) (addr string, links *Links) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	links, refusals := &Links{}, NewRefusals(log.logger(), nil)
	server := grpc.NewServer(grpc.Creds(ServerCredentials(self, e, links, refusals)), grpc.ConnectionTimeout(300*time.Millisecond), grpc.WaitForHandlers(true))
	healthv1.RegisterHealthServer(server, health.NewServer())
	done := make(chan error, 1)
	go func() { done <- server.Serve(Limit(l, Limits{Total: 64, PerHost: 32}, refusals)) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String(), links
}

func dialRig(t *testing.T, addr string, c *Credentials) healthv1.HealthClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(c), grpc.WithNoProxy())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return healthv1.NewHealthClient(conn)
}

func ask(t *testing.T, c healthv1.HealthClient) error {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	_, err := c.Check(ctx, &healthv1.HealthCheckRequest{})
	return err
}

// A peer that is revoked while it is connected loses its connection, and does not get another.
func TestRevokedWhileConnected(t *testing.T) {
	a := newAuthority(t)
	var log lines
	var revoked atomic.Bool
	addr, links := grpcRig(t, a.member(aWorker, nil), Expect{Role: Coordinator, Allow: func(Peer, *x509.Certificate) error {
		if revoked.Load() {
			return apierr.New(apierr.Conflict, "it was revoked")
		}
		return nil
	}}, &log)
	creds := ClientCredentials(a.member(aCoordinator, nil), Expect{Role: Worker}, &Links{}, NewRefusals(log.logger(), nil))
	client := dialRig(t, addr, creds)
	if err := ask(t, client); err != nil {
		t.Fatal(err)
	}
	stream, err := client.Watch(t.Context(), &healthv1.HealthCheckRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if err != nil {
		t.Fatal(err)
	}
	revoked.Store(true)
	if n := links.Drop(func(p Peer, _ *x509.Certificate) bool { return p.ID == "desk" }); n != 1 {
		t.Fatalf("%d connections were dropped", n)
	}
	if _, err := stream.Recv(); err == nil {
		t.Error("the stream of a revoked peer goes on")
	}
	if err := ask(t, client); err == nil {
		t.Error("a revoked peer came back")
	}
	if !strings.Contains(log.String(), string(NotAllowed)) {
		t.Errorf("nothing in the log:\n%s", log.String())
	}
}

// What a handshake refused keeps its code and advice, although gRPC makes a text of it.
func TestExplain(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	var log lines
	addr, _ := grpcRig(t, a.member(aWorker, nil), Expect{Role: Coordinator}, &log)
	creds := ClientCredentials(other.member(aCoordinator, nil), Expect{Role: Worker}, &Links{}, NewRefusals(log.logger(), nil))
	err := creds.Explain(ask(t, dialRig(t, addr, creds)))
	if ReasonOf(err) != OtherAuthority || len(apierr.As(err).Next) == 0 {
		t.Errorf("explained as %#v", err)
	}
}

// Peers that say nothing, say it slowly, or speak in clear text cost their connection, and members are served meanwhile.
func TestStrangersDoNotHinderMembers(t *testing.T) {
	a := newAuthority(t)
	var log lines
	addr, _ := grpcRig(t, a.member(aWorker, nil), Expect{Role: Coordinator}, &log)
	refused := NewRefusals(log.logger(), nil)
	var strangers []net.Conn
	for i := range 500 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		switch i % 3 { // the rest is half open
		case 1:
			conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
		case 2:
			conn.Write([]byte{22, 3, 1, 2}) // a handshake's first bytes, and no more
		}
		strangers = append(strangers, conn)
	}
	for i, conn := range strangers {
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		for {
			if _, err := conn.Read(make([]byte, 1024)); err != nil { // an alert may come first
				if ne, ok := err.(net.Error); ok && ne.Timeout() {
					t.Fatalf("stranger %d is still connected", i)
				}
				break
			}
		}
	}
	creds := ClientCredentials(a.member(aCoordinator, nil), Expect{Role: Worker}, &Links{}, refused)
	if err := ask(t, dialRig(t, addr, creds)); err != nil {
		t.Errorf("a member: %v", err)
	}
	if n := strings.Count(log.String(), "\n"); n > 4 {
		t.Errorf("%d lines about one host:\n%s", n, log.String())
	}
	for _, want := range []Reason{ClearText, TooManyConnected} {
		if !strings.Contains(log.String(), string(want)) {
			t.Errorf("the log does not say %q:\n%s", want, log.String())
		}
	}
}
