package enrol

import (
	"context"
	"crypto/subtle"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"

	"github.com/loopkeeper/loopkeeper/coordinator/trust"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/identity"
	enrolv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/enrol/v1"
)

// What a stranger may cost. An honest machine needs one connection, for less than a second at a time.
const (
	maxMessage       = 16 << 10 // bytes
	maxHeaders       = 8 << 10  // bytes
	mostConnections  = 64
	mostFromOneHost  = 8
	connectionLife   = 20 * time.Second
	handshakeTimeout = 5 * time.Second
	callsAtOnce      = 4 // on a connection
)

// Options is what a Server is made of.
type Options struct {
	Book     *trust.Book
	Self     *identity.Identity // with the role enrolment
	Listener net.Listener       // on the network; Serve closes it
	Refusals *identity.Refusals
	Log      *slog.Logger
	Now      func() time.Time // nil: time.Now
	Life     time.Duration    // of a connection; 0 is 20 s
}

// Server is the enrolment service.
type Server struct {
	enrolv1.UnimplementedEnrolServiceServer
	o      Options
	server *grpc.Server
	done   chan error

	mu   sync.Mutex
	asks asks
}

// Start serves until Stop.
func Start(o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Life <= 0 {
		o.Life = connectionLife
	}
	s := &Server{o: o, done: make(chan error, 1), asks: asks{byTicket: map[string]*ask{}, credit: beginBurst, filled: o.Now()}}
	config := identity.ShowingConfig(func() (*tls.Certificate, error) {
		if err := o.Book.Authority().RenewOwn(o.Self); err != nil {
			return nil, err
		}
		return o.Self.Shown(), nil
	})
	s.server = grpc.NewServer(grpc.Creds(noting{credentials.NewTLS(config), o.Refusals}), grpc.MaxRecvMsgSize(maxMessage), grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(callsAtOnce), grpc.ConnectionTimeout(min(handshakeTimeout, o.Life)), grpc.ReadBufferSize(4<<10), grpc.WriteBufferSize(4<<10),
		grpc.WaitForHandlers(true))
	enrolv1.RegisterEnrolServiceServer(s.server, s)
	limits := identity.Limits{Total: mostConnections, PerHost: mostFromOneHost, Life: o.Life}
	go func() { s.done <- s.server.Serve(identity.Limit(o.Listener, limits, o.Refusals)) }()
	return s
}

// Stop ends the service and returns why it ended before, if it did. It is called once.
func (s *Server) Stop() error {
	s.server.Stop()
	return <-s.done
}

// noting are credentials whose failed handshakes are noted.
type noting struct {
	credentials.TransportCredentials
	refusals *identity.Refusals
}

// ServerHandshake implements credentials.TransportCredentials.
func (n noting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := n.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		n.refusals.Note(raw.RemoteAddr(), err)
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (n noting) Clone() credentials.TransportCredentials {
	return noting{n.TransportCredentials.Clone(), n.refusals}
}

func caller(ctx context.Context) net.Addr {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr
	}
	return nil
}

// Enrol implements the service.
func (s *Server) Enrol(ctx context.Context, r *enrolv1.EnrolRequest) (*enrolv1.EnrolResponse, error) {
	secret, ok := trust.SecretOf(r.GetSecret())
	if !ok {
		return nil, apierr.ToStatus(apierr.New(apierr.InvalidArgument, "a token's secret has %d bytes", trust.SecretBytes))
	}
	leaf, err := s.o.Book.Spend(ctx, secret, trust.Newcomer{ID: r.GetNodeId(), Name: r.GetName(), CSR: r.GetCsr()})
	if err != nil {
		s.o.Refusals.Note(caller(ctx), identity.NewRefusal(identity.TokenRefused, apierr.As(err)))
		return nil, apierr.ToStatus(err)
	}
	s.o.Log.Info("a machine joined by a token", "node", r.GetNodeId(), "name", r.GetName(), "address", identity.HostOf(caller(ctx)))
	return &enrolv1.EnrolResponse{Certificate: leaf.Raw}, nil
}

// Begin implements the service.
func (s *Server) Begin(ctx context.Context, r *enrolv1.BeginRequest) (*enrolv1.BeginResponse, error) {
	p := Pending{ID: r.GetNodeId(), Name: r.GetName(), Host: identity.HostOf(caller(ctx))}
	if err := (trust.Newcomer{ID: p.ID, Name: p.Name}).Check(); err != nil {
		return nil, apierr.ToStatus(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ticket, nonce, err := s.asks.begin(s.o.Now(), p, r.GetCommitment())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	return &enrolv1.BeginResponse{Ticket: []byte(ticket), Nonce: nonce}, nil
}

// Reveal implements the service.
func (s *Server) Reveal(_ context.Context, r *enrolv1.RevealRequest) (*enrolv1.RevealResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.asks.reveal(s.o.Now(), r.GetTicket(), r.GetNonce(), r.GetCsr(), func(ours []byte) string {
		return code(r.GetNonce(), ours, r.GetCsr(), s.o.Book.Authority().Fingerprint())
	})
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	return &enrolv1.RevealResponse{}, nil
}

// Await implements the service.
func (s *Server) Await(_ context.Context, r *enrolv1.AwaitRequest) (*enrolv1.AwaitResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, err := s.asks.of(s.o.Now(), r.GetTicket())
	if err == nil && k.refused {
		err = apierr.New(apierr.Conflict, "somebody at the coordinator refused this machine")
	}
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	return &enrolv1.AwaitResponse{Certificate: k.leaf}, nil
}

// Pending returns the machines that wait for a person.
func (s *Server) Pending() []Pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks.pending(s.o.Now())
}

// Accept lets in the machine that waits under a name or id and shows this code.
func (s *Server) Accept(ctx context.Context, name, code string) (trust.Newcomer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, err := s.asks.called(s.o.Now(), name)
	if err != nil {
		return trust.Newcomer{}, err
	}
	code = strings.ReplaceAll(code, " ", "")
	for _, k := range waiting {
		if subtle.ConstantTimeCompare([]byte(k.Code), []byte(code)) != 1 {
			continue
		}
		n := trust.Newcomer{ID: k.ID, Name: k.Name, CSR: k.csr}
		leaf, err := s.o.Book.Admit(ctx, n, "code")
		if err != nil {
			return trust.Newcomer{}, err
		}
		k.leaf = leaf.Raw
		return n, nil
	}
	return trust.Newcomer{}, apierr.New(apierr.Conflict, "%.80q does not wait with the code %.20q", name, code).
		WithNext("look at the code on the machine itself: if it is another than here, somebody is in between", "loopkeeper nodes refuse NAME")
}

// Refuse sends every machine away that waits under a name or id.
func (s *Server) Refuse(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, err := s.asks.called(s.o.Now(), name)
	for _, k := range waiting {
		k.refused = true
	}
	return err
}
