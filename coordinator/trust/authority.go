package trust

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"math/big"
	"net/url"
	"path/filepath"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/identity"
)

// The files of an authority, in a folder that only its owner may enter.
const (
	AuthorityKeyFile = "authority.key"
	AuthorityFile    = identity.AuthorityFile
)

const (
	day           = 24 * time.Hour
	authorityLife = 10 * 365 * day
	leafLife      = 90 * day
	backdated     = time.Hour // for the clocks of others that are behind
)

// Authority signs the certificates of one fleet. It may be used by many goroutines.
type Authority struct {
	fleet string
	key   *ecdsa.PrivateKey
	cert  *x509.Certificate
	now   func() time.Time
}

// OpenAuthority reads the authority in dir, or makes one there. A nil now is time.Now.
func OpenAuthority(dir, fleet string, now func() time.Time) (*Authority, error) {
	if now == nil {
		now = time.Now
	}
	if err := (identity.Peer{Fleet: fleet, Role: identity.Coordinator, ID: "any"}).Check(); err != nil {
		return nil, err
	}
	key, err := identity.KeyAt(filepath.Join(dir, AuthorityKeyFile))
	if err != nil {
		return nil, apierr.Wrap(err, apierr.Unavailable, "open the fleet's authority")
	}
	a := &Authority{fleet: fleet, key: key, now: now}
	path := filepath.Join(dir, AuthorityFile)
	a.cert, err = identity.CertificateAt(path)
	if errors.Is(err, fs.ErrNotExist) { // the first start, or one that a crash cut short
		err = a.signSelf(path)
	}
	if err != nil {
		return nil, apierr.Wrap(err, apierr.Unavailable, "open the fleet's authority")
	}
	switch {
	case !key.PublicKey.Equal(a.cert.PublicKey):
		return nil, apierr.New(apierr.Conflict, "%s is of another key than %s", path, AuthorityKeyFile).WithNext("bring both back from one backup")
	case len(a.cert.Subject.Organization) != 1 || a.cert.Subject.Organization[0] != fleet:
		return nil, apierr.New(apierr.Conflict, "%s is the authority of fleet %.80q, this is %q", path, a.cert.Subject.Organization, fleet).
			WithNext("set the `fleet` that it had, or take another data folder")
	}
	return a, nil
}

func (a *Authority) signSelf(path string) error {
	from := a.now().Add(-backdated)
	der, err := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "loopkeeper", Organization: []string{a.fleet}}, NotBefore: from, NotAfter: from.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign}, nil, &a.key.PublicKey)
	if err != nil {
		return err
	}
	if err := identity.WriteCertificate(path, der); err != nil {
		return err
	}
	a.cert, err = x509.ParseCertificate(der)
	return err
}

func (a *Authority) sign(template, parent *x509.Certificate, key *ecdsa.PublicKey) ([]byte, error) {
	if parent == nil {
		parent = template
	}
	template.SerialNumber = new(big.Int).SetBytes(randomBytes(16))
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.Internal, "sign a certificate")
	}
	return der, nil
}

// Fleet is whose authority it is.
func (a *Authority) Fleet() string { return a.fleet }

// Certificate is the authority's own.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// Fingerprint names the authority's key.
func (a *Authority) Fingerprint() identity.Fingerprint { return identity.FingerprintOf(a.cert) }

// Issue signs a certificate of p for the key of a request. It asks nobody: Book decides who gets one.
func (a *Authority) Issue(csr []byte, p identity.Peer) (*x509.Certificate, error) {
	key, err := keyOfRequest(csr)
	if err != nil {
		return nil, err
	}
	if err := p.Check(); err != nil {
		return nil, err
	}
	if p.Fleet != a.fleet {
		return nil, apierr.New(apierr.Conflict, "fleet %q cannot vouch for %s", a.fleet, p)
	}
	from, until := a.now().Add(-backdated), a.now().Add(leafLife)
	if from.Before(a.cert.NotBefore) {
		from = a.cert.NotBefore
	}
	if until.After(a.cert.NotAfter) {
		until = a.cert.NotAfter
	}
	if !from.Before(until) {
		return nil, apierr.New(apierr.Conflict, "the fleet's authority ended at %s; this machine's clock says %s",
			a.cert.NotAfter.UTC().Format(time.RFC3339), a.now().UTC().Format(time.RFC3339)).WithNext("date -u  # set the clock when it is wrong")
	}
	usage := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if p.Role == identity.Enrolment {
		usage = usage[:1]
	}
	der, err := a.sign(&x509.Certificate{URIs: []*url.URL{p.URI()}, NotBefore: from, NotAfter: until, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usage}, a.cert, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Own returns the identity in dir of a part of the coordinator's own process, and makes or renews it when that is due.
func (a *Authority) Own(dir string, p identity.Peer) (*identity.Identity, error) {
	i, err := identity.Open(dir)
	if err == nil && i.Peer() == p && i.Authority().Equal(a.cert) {
		return i, a.RenewOwn(i)
	}
	if err != nil && apierr.CodeOf(err) != apierr.NotFound {
		return nil, err
	}
	key, err := identity.KeyAt(filepath.Join(dir, identity.KeyFile))
	if err != nil {
		return nil, err
	}
	csr, err := identity.Request(key)
	if err != nil {
		return nil, err
	}
	leaf, err := a.Issue(csr, p)
	if err != nil {
		return nil, err
	}
	return identity.Install(dir, key, leaf, a.cert)
}

// RenewOwn gives an identity of this process its next certificate when that is due.
func (a *Authority) RenewOwn(i *identity.Identity) error {
	if a.now().Before(i.RenewAt()) {
		return nil
	}
	csr, err := i.Request()
	if err != nil {
		return err
	}
	leaf, err := a.Issue(csr, i.Peer())
	if err != nil {
		return err
	}
	return i.Renew(leaf.Raw)
}
