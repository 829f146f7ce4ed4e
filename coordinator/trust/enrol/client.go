package enrol

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/loopkeeper/loopkeeper/coordinator/trust"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/identity"
	enrolv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/enrol/v1"
)

const (
	callTimeout = 10 * time.Second
	pollEvery   = time.Second
)

// Machine is the one that wants to join.
type Machine struct {
	Key  *ecdsa.PrivateKey // identity.KeyAt
	ID   string            // node id
	Name string            // for people
	Now  func() time.Time  // nil: time.Now
}

// Admission is what a machine gets; identity.Install keeps it.
type Admission struct {
	Leaf      *x509.Certificate
	Authority *x509.Certificate
}

// Join joins by a token, at the first of its addresses where the right authority answers. When none does, the error of an
// address where another authority answered is told before one where nobody did.
func Join(ctx context.Context, t trust.Token, m Machine) (Admission, error) {
	csr, err := identity.Request(m.Key)
	if err != nil {
		return Admission{}, err
	}
	var failure error
	for _, addr := range t.Addresses {
		pin := identity.NewPin(t.Fingerprint, "", m.Now)
		a, err := m.joinAt(ctx, addr, pin, &enrolv1.EnrolRequest{Secret: t.Secret.Bytes(), Csr: csr, NodeId: m.ID, Name: m.Name})
		if err == nil {
			return a, nil
		}
		if code := apierr.CodeOf(err); code != apierr.Unavailable && pin.Failure() == nil {
			return Admission{}, err // the coordinator said it
		}
		if failure == nil || pin.Failure() != nil {
			failure = apierr.Wrap(err, apierr.Unavailable, "join at %s", addr)
		}
	}
	return Admission{}, failure
}

func (m Machine) joinAt(ctx context.Context, addr string, pin *identity.Pin, r *enrolv1.EnrolRequest) (Admission, error) {
	client, hangUp, err := dial(addr, pin)
	if err != nil {
		return Admission{}, err
	}
	defer hangUp()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := client.Enrol(ctx, r)
	if err != nil {
		return Admission{}, told(pin, err)
	}
	return m.admission(response.GetCertificate(), pin)
}

// Person is who compares the two codes.
type Person struct {
	// Show shows the machine's code; it is called once.
	Show func(code string)
	// Compared is called when whoever answers has accepted, and says whether the person saw the same code at the coordinator and
	// accepted it there. It has to be asked at the machine, too: somebody in between would accept for the coordinator.
	Compared func(ctx context.Context, code string) (bool, error)
}

// Ask joins without a token and returns when a person has decided at both ends, or ctx ends. The fleet may be "": any.
func Ask(ctx context.Context, addr, fleet string, m Machine, p Person) (Admission, error) {
	csr, err := identity.Request(m.Key)
	if err != nil {
		return Admission{}, err
	}
	pin := identity.NewPin(identity.Fingerprint{}, fleet, m.Now)
	client, hangUp, err := dial(addr, pin)
	if err != nil {
		return Admission{}, err
	}
	defer hangUp()
	nonce := random(nonceBytes)
	ticket, ours, err := m.propose(ctx, client, nonce, csr)
	if err != nil {
		return Admission{}, told(pin, err)
	}
	shown := code(nonce, ours, csr, identity.FingerprintOf(pin.Authority()))
	p.Show(shown)
	der, err := await(ctx, client, ticket, pin)
	if err != nil {
		return Admission{}, err
	}
	a, err := m.admission(der, pin)
	if err != nil {
		return Admission{}, err
	}
	switch same, err := p.Compared(ctx, shown); {
	case err != nil:
		return Admission{}, err
	case !same:
		return Admission{}, apierr.New(apierr.Conflict, "what accepted this machine at %s does not show its code: somebody may be in between, and nothing of it was kept", addr).
			WithNext("look which machine has this address", "loopkeeper tokens create  # on the coordinator: a token names its authority")
	}
	return a, nil
}

// await asks until a person has decided at the other end, and returns the certificate.
func await(ctx context.Context, client enrolv1.EnrolServiceClient, ticket []byte, pin *identity.Pin) ([]byte, error) {
	for {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		response, err := client.Await(call, &enrolv1.AwaitRequest{Ticket: ticket})
		cancel()
		switch {
		case err == nil && len(response.GetCertificate()) > 0:
			return response.GetCertificate(), nil
		case ctx.Err() != nil:
			return nil, apierr.Wrap(ctx.Err(), apierr.Cancelled, "wait to be accepted")
		case err != nil && (pin.Failure() != nil || apierr.CodeOf(apierr.FromStatus(err)) != apierr.Unavailable):
			return nil, told(pin, err)
		}
		pause(ctx, pollEvery) // connections end every some seconds: the next call makes a new one
	}
}

// propose begins and reveals.
func (m Machine) propose(ctx context.Context, client enrolv1.EnrolServiceClient, nonce, csr []byte) (ticket, ours []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c := commit(nonce, csr)
	begun, err := client.Begin(ctx, &enrolv1.BeginRequest{Commitment: c[:], NodeId: m.ID, Name: m.Name})
	if err != nil {
		return nil, nil, err
	}
	if len(begun.GetNonce()) != nonceBytes {
		return nil, nil, apierr.New(apierr.InvalidArgument, "the coordinator's nonce has %d bytes, not %d", len(begun.GetNonce()), nonceBytes)
	}
	_, err = client.Reveal(ctx, &enrolv1.RevealRequest{Ticket: begun.GetTicket(), Nonce: nonce, Csr: csr})
	return begun.GetTicket(), begun.GetNonce(), err
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// admission checks what came: of this machine, its key and the authority that was met.
func (m Machine) admission(der []byte, pin *identity.Pin) (Admission, error) {
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return Admission{}, apierr.New(apierr.InvalidArgument, "the coordinator sent no certificate")
	}
	i, err := identity.New("", m.Key, leaf, pin.Authority())
	if err != nil {
		return Admission{}, err
	}
	if p := i.Peer(); p.Role != identity.Worker || p.ID != m.ID {
		return Admission{}, apierr.New(apierr.InvalidArgument, "the coordinator sent the certificate of %s", p)
	}
	return Admission{Leaf: leaf, Authority: pin.Authority()}, nil
}

// told is why a call failed: what the pin said of who answered, or what came back.
func told(pin *identity.Pin, err error) error {
	if f := pin.Failure(); f != nil {
		return f
	}
	return apierr.FromStatus(err)
}

func dial(addr string, pin *identity.Pin) (enrolv1.EnrolServiceClient, func() error, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(credentials.NewTLS(pin.Config())), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)))
	if err != nil {
		return nil, nil, apierr.Wrap(err, apierr.InvalidArgument, "dial %s", addr)
	}
	return enrolv1.NewEnrolServiceClient(conn), conn.Close, nil
}
