package identity

import (
	"crypto/tls"
	"crypto/x509"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Reason is why a peer was refused, in a form that does not vary, so that a log can say it once.
type Reason string

// The reasons.
const (
	NoCertificate    Reason = "no certificate"
	OtherAuthority   Reason = "certificate of another authority"
	Malformed        Reason = "certificate names no machine of a fleet"
	OtherFleet       Reason = "another fleet"
	OtherRole        Reason = "another role"
	OtherNode        Reason = "another machine"
	Expired          Reason = "certificate expired"
	NotYetValid      Reason = "certificate not yet valid"
	NotAllowed       Reason = "revoked or unknown"
	OldTLS           Reason = "TLS below 1.3"
	ClearText        Reason = "not TLS"
	TooSlow          Reason = "handshake too slow"
	HandshakeFailed  Reason = "handshake failed"
	TooManyConnected Reason = "too many connections"
	TokenRefused     Reason = "token refused"
)

// Refusal is a peer that was refused. Its message, code and advice are those of the apierr.Error in it.
type Refusal struct {
	Reason Reason
	err    *apierr.Error
}

// NewRefusal makes one.
func NewRefusal(r Reason, err *apierr.Error) *Refusal { return &Refusal{Reason: r, err: err} }

// Error is the message.
func (r *Refusal) Error() string { return r.err.Error() }

// Unwrap returns the *apierr.Error.
func (r *Refusal) Unwrap() error { return r.err }

// Expect is who may be at the other end.
type Expect struct {
	Role Role
	ID   string // node id; "" while it is not known
	// Allow is asked about every peer, at every handshake, after all else was checked; an error refuses it. It must not
	// block. Nil allows all whom the authority signed: right for a worker, which has no list.
	Allow func(Peer, *x509.Certificate) error
	Now   func() time.Time // nil: time.Now
}

func (e Expect) now() time.Time {
	if e.Now == nil {
		return time.Now()
	}
	return e.Now()
}

// chained says whether authority signed leaf as one that may be used so. When that holds is not asked here.
func chained(leaf, authority *x509.Certificate, usage x509.ExtKeyUsage) error {
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	_, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: leaf.NotBefore, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

// verify decides on the peer of one handshake.
func (e Expect) verify(s tls.ConnectionState, fleet string, authority *x509.Certificate, usage x509.ExtKeyUsage) error {
	if len(s.PeerCertificates) == 0 {
		return NewRefusal(NoCertificate, apierr.New(apierr.Conflict, "the other side shows no certificate").WithNext("loopkeeper worker join  # on that machine"))
	}
	leaf := s.PeerCertificates[0]
	if err := chained(leaf, authority, usage); err != nil || leaf.IsCA {
		return NewRefusal(OtherAuthority, apierr.New(apierr.Conflict, "the other side's certificate is not of this fleet's authority (fingerprint %.16s)", FingerprintOf(authority)).
			WithNext("loopkeeper worker join  # on that machine, with a token of this fleet"))
	}
	peer, err := PeerOf(leaf)
	if err != nil {
		return NewRefusal(Malformed, apierr.Wrap(err, apierr.Conflict, "the other side cannot be named"))
	}
	switch {
	case peer.Fleet != fleet:
		return NewRefusal(OtherFleet, apierr.New(apierr.Conflict, "%s is of another fleet, this is %s", peer, fleet))
	case peer.Role != e.Role:
		return NewRefusal(OtherRole, apierr.New(apierr.Conflict, "%s answers where a %s was expected", peer, e.Role))
	case e.ID != "" && peer.ID != e.ID:
		return NewRefusal(OtherNode, apierr.New(apierr.Conflict, "%s answers where %s was expected", peer, e.ID))
	}
	now := e.now()
	if err := inTime(leaf, "the certificate of "+peer.String(), now); err != nil {
		return err
	}
	if err := inTime(authority, "the fleet's authority", now); err != nil {
		return err
	}
	if e.Allow != nil {
		if err := e.Allow(peer, leaf); err != nil {
			return NewRefusal(NotAllowed, apierr.Wrap(err, apierr.Conflict, "%s is refused", peer))
		}
	}
	return nil
}

// inTime says whether a certificate holds now, and whose clock to look at when it does not.
func inTime(c *x509.Certificate, whose string, now time.Time) error {
	said := now.UTC().Format(time.RFC3339)
	switch {
	case now.After(c.NotAfter):
		return NewRefusal(Expired, apierr.New(apierr.Conflict, "%s ended at %s; this machine's clock says %s", whose, c.NotAfter.UTC().Format(time.RFC3339), said).
			WithNext("date -u  # on both machines: set a clock that is wrong", "loopkeeper worker join  # on the machine whose certificate ended, when the clocks are right"))
	case now.Before(c.NotBefore):
		return NewRefusal(NotYetValid, apierr.New(apierr.Conflict, "%s begins at %s; this machine's clock says %s", whose, c.NotBefore.UTC().Format(time.RFC3339), said).
			WithNext("date -u  # on both machines: set a clock that is wrong"))
	}
	return nil
}
