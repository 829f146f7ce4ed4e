package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"net/url"
	"strings"

	"google.golang.org/grpc/credentials"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/discovery"
)

// Role is what a certificate allows its holder to be.
type Role string

// The roles.
const (
	Coordinator Role = "coordinator" // may command workers
	Worker      Role = "worker"      // may be commanded
	Enrolment   Role = "enrolment"   // may take requests to join, and nothing else
)

// Peer is who a certificate speaks of.
type Peer struct {
	Fleet string // fleet id
	Role  Role
	ID    string // node id
}

// Check says what is wrong with p; the error is an apierr.InvalidArgument.
func (p Peer) Check() error {
	switch {
	case !discovery.ValidLabel(p.Fleet):
		return apierr.New(apierr.InvalidArgument, "fleet id %.80q is not a label of a-z, 0-9 and -", p.Fleet)
	case !discovery.ValidLabel(p.ID):
		return apierr.New(apierr.InvalidArgument, "node id %.80q is not a label of a-z, 0-9 and -", p.ID)
	case p.Role != Coordinator && p.Role != Worker && p.Role != Enrolment:
		return apierr.New(apierr.InvalidArgument, "there is no role %.80q", string(p.Role))
	}
	return nil
}

// String is the text form, "loopkeeper://FLEET/ROLE/ID".
func (p Peer) String() string { return "loopkeeper://" + p.Fleet + "/" + string(p.Role) + "/" + p.ID }

// URI is the subject alternative name that a certificate of p carries.
func (p Peer) URI() *url.URL {
	return &url.URL{Scheme: "loopkeeper", Host: p.Fleet, Path: "/" + string(p.Role) + "/" + p.ID}
}

// PeerOf reads who a certificate speaks of: it has one name, a URI of ours. Whether it may be believed is not asked here.
func PeerOf(c *x509.Certificate) (Peer, error) {
	if len(c.URIs) != 1 || len(c.DNSNames)+len(c.IPAddresses)+len(c.EmailAddresses) > 0 {
		return Peer{}, apierr.New(apierr.InvalidArgument, "the certificate does not name one machine of a fleet")
	}
	u := c.URIs[0]
	role, id, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	p := Peer{Fleet: u.Host, Role: Role(role), ID: id}
	if err := p.Check(); err != nil {
		return Peer{}, err
	}
	if u.String() != p.String() { // another scheme, a port, a query, an escape
		return Peer{}, apierr.New(apierr.InvalidArgument, "the certificate's name %.120q is not one of a fleet", u.String())
	}
	return p, nil
}

// PeerOfCall returns who is at the other end of a call whose connection this package verified; ok is false for any other.
func PeerOfCall(info credentials.AuthInfo) (p Peer, ok bool) {
	tls, ok := info.(credentials.TLSInfo)
	if !ok || len(tls.State.PeerCertificates) == 0 {
		return Peer{}, false
	}
	p, err := PeerOf(tls.State.PeerCertificates[0])
	return p, err == nil
}

// Fingerprint is the SHA-256 of a public key (RFC 5280 SubjectPublicKeyInfo): it names the key, not one certificate of it.
type Fingerprint [sha256.Size]byte

// FingerprintOf returns that of a certificate's key.
func FingerprintOf(c *x509.Certificate) Fingerprint { return sha256.Sum256(c.RawSubjectPublicKeyInfo) }

// String is the text form, lower-case hex.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }
