package identity

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// ServerConfig is TLS 1.3 for the side that listens. Both sides show a certificate, and e decides on the other's.
func ServerConfig(self *Identity, e Expect) *tls.Config {
	c := ShowingConfig(func() (*tls.Certificate, error) { return self.Shown(), nil })
	c.ClientAuth = tls.RequestClientCert // asked for and checked below, where a missing one gets its own reason
	c.VerifyConnection = func(s tls.ConnectionState) error {
		return e.verify(s, self.peer.Fleet, self.authority, x509.ExtKeyUsageClientAuth)
	}
	return c
}

// ShowingConfig is TLS 1.3 for a listener that shows a certificate and asks for none.
func ShowingConfig(show func() (*tls.Certificate, error)) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		SessionTicketsDisabled: true, // every handshake is whole, so every one is decided on
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return show() },
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			if !slices.Contains(h.SupportedVersions, tls.VersionTLS13) {
				return nil, NewRefusal(OldTLS, apierr.New(apierr.IncompatibleVersion, "the other side offers no TLS 1.3"))
			}
			return nil, nil
		},
	}
}

// ClientConfig is TLS 1.3 for the side that dials. Names and addresses of hosts prove nothing and are not looked at.
func ClientConfig(self *Identity, e Expect) *tls.Config {
	return &tls.Config{
		MinVersion:           tls.VersionTLS13,
		InsecureSkipVerify:   true, // of host names; VerifyConnection decides
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return self.Shown(), nil },
		VerifyConnection: func(s tls.ConnectionState) error {
			if err := inTime(self.Leaf(), "this machine's certificate", e.now()); err != nil {
				return err
			}
			return e.verify(s, self.peer.Fleet, self.authority, x509.ExtKeyUsageServerAuth)
		},
	}
}

// Pin is how a machine that has joined no fleet yet believes the enrolment service of one: by the fingerprint in its token,
// or, without a token, by holding on to the first authority that it meets until a person has compared a code.
type Pin struct {
	want  Fingerprint // zero: the first one met
	fleet string      // "": any
	now   func() time.Time

	mu        sync.Mutex
	authority *x509.Certificate
	failure   error
}

// NewPin returns a Pin; a zero fingerprint takes the first authority met, an empty fleet any, a nil now is time.Now.
func NewPin(want Fingerprint, fleet string, now func() time.Time) *Pin {
	if now == nil {
		now = time.Now
	}
	return &Pin{want: want, fleet: fleet, now: now}
}

// Authority is the one that was met; nil before the first handshake that passed.
func (p *Pin) Authority() *x509.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.authority
}

// Failure is why the last handshake was refused here, with code and advice; nil when it was not.
func (p *Pin) Failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// Config is TLS 1.3 for the dialling side. It shows no certificate.
func (p *Pin) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, VerifyConnection: p.verify}
}

func (p *Pin) verify(s tls.ConnectionState) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = p.decide(s)
	return p.failure
}

// decide is verify; mu is held.
func (p *Pin) decide(s tls.ConnectionState) error {
	if len(s.PeerCertificates) != 2 || !s.PeerCertificates[1].IsCA {
		return NewRefusal(OtherAuthority, apierr.New(apierr.Conflict, "what answers is not the enrolment service of a fleet"))
	}
	authority := s.PeerCertificates[1]
	var none Fingerprint
	if p.want == none && p.authority != nil {
		p.want = FingerprintOf(p.authority)
	}
	if got := FingerprintOf(authority); p.want != none && p.want != got {
		return NewRefusal(OtherAuthority, apierr.New(apierr.Conflict,
			"what answers is another authority than the token names (fingerprint %.16s, the token has %.16s): somebody may be in between, or the token is of another fleet", got, p.want).
			WithNext("loopkeeper tokens list  # on the coordinator shows its fingerprint", "look which machine has this address before you try again"))
	}
	fleet := p.fleet
	if fleet == "" {
		peer, err := PeerOf(s.PeerCertificates[0])
		if err != nil {
			return NewRefusal(Malformed, apierr.Wrap(err, apierr.Conflict, "what answers cannot be named"))
		}
		fleet = peer.Fleet
	}
	err := Expect{Role: Enrolment, Now: p.now}.verify(s, fleet, authority, x509.ExtKeyUsageServerAuth)
	if err == nil {
		p.authority = authority
	}
	return err
}
