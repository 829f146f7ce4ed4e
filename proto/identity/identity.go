package identity

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// The files of an identity, in a folder that only its owner may enter.
const (
	KeyFile         = "node.key"
	CertificateFile = "node.crt"
	AuthorityFile   = "authority.crt"
)

// Identity is this machine's key, its certificate and the authority it believes. It may be used by many goroutines; a
// renewed certificate is used from the next handshake on.
type Identity struct {
	dir       string
	key       *ecdsa.PrivateKey
	peer      Peer
	authority *x509.Certificate

	mu   sync.Mutex
	leaf *x509.Certificate
}

// Open reads the identity in dir. The error is an apierr.NotFound when this machine has not joined a fleet yet.
func Open(dir string) (*Identity, error) {
	authority, err := CertificateAt(filepath.Join(dir, AuthorityFile))
	if err == nil {
		_, err = CertificateAt(filepath.Join(dir, CertificateFile))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, apierr.New(apierr.NotFound, "this machine has not joined a fleet").
			WithNext("loopkeeper worker join  # asks for a token, which the coordinator's machine makes")
	}
	if err != nil {
		return nil, err
	}
	key, err := KeyAt(filepath.Join(dir, KeyFile))
	if err != nil {
		return nil, err
	}
	leaf, err := CertificateAt(filepath.Join(dir, CertificateFile))
	if err != nil {
		return nil, err
	}
	return New(dir, key, leaf, authority)
}

// Install keeps what the authority gave for the key in dir, and returns the identity. What does not belong together is an
// apierr.InvalidArgument, and nothing is written.
func Install(dir string, key *ecdsa.PrivateKey, leaf, authority *x509.Certificate) (*Identity, error) {
	i, err := New(dir, key, leaf, authority)
	if err != nil {
		return nil, err
	}
	// The certificate comes last: without it, this machine has not joined.
	if err := WriteCertificate(filepath.Join(dir, AuthorityFile), authority.Raw); err != nil {
		return nil, err
	}
	return i, WriteCertificate(filepath.Join(dir, CertificateFile), leaf.Raw)
}

// New makes an identity of its parts and writes nothing; dir is where Renew will, "" for nowhere.
func New(dir string, key *ecdsa.PrivateKey, leaf, authority *x509.Certificate) (*Identity, error) {
	peer, err := PeerOf(leaf)
	if err != nil {
		return nil, err
	}
	if err := belongs(key, leaf, authority); err != nil {
		return nil, err
	}
	return &Identity{dir: dir, key: key, peer: peer, authority: authority, leaf: leaf}, nil
}

func belongs(key *ecdsa.PrivateKey, leaf, authority *x509.Certificate) error {
	if !key.PublicKey.Equal(leaf.PublicKey) {
		return apierr.New(apierr.InvalidArgument, "the certificate is of another key than this machine's").
			WithNext("loopkeeper worker join")
	}
	if err := chained(leaf, authority, x509.ExtKeyUsageAny); err != nil {
		return apierr.Wrap(err, apierr.InvalidArgument, "the certificate and the authority do not belong together")
	}
	return nil
}

// Peer is who this machine is.
func (i *Identity) Peer() Peer { return i.peer }

// Authority is the one that this machine believes.
func (i *Identity) Authority() *x509.Certificate { return i.authority }

// Request asks for the next certificate of this machine's key, PKCS #10 in DER.
func (i *Identity) Request() ([]byte, error) { return Request(i.key) }

// Leaf is the certificate in use.
func (i *Identity) Leaf() *x509.Certificate {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.leaf
}

// RenewAt is when the certificate should be replaced: at two thirds of its life, so that a month is left to notice when
// that fails.
func (i *Identity) RenewAt() time.Time {
	leaf := i.Leaf()
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) * 2 / 3)
}

// Renew takes the next certificate, in DER: of the same machine, key and authority, and not an older one.
func (i *Identity) Renew(der []byte) error {
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return apierr.New(apierr.InvalidArgument, "what should renew this machine's certificate is none")
	}
	peer, err := PeerOf(leaf)
	if err != nil {
		return err
	}
	if err := belongs(i.key, leaf, i.authority); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	switch {
	case peer != i.peer:
		return apierr.New(apierr.InvalidArgument, "the new certificate is of %s, this is %s", peer, i.peer)
	case bytes.Equal(leaf.Raw, i.leaf.Raw):
		return nil
	case leaf.NotAfter.Before(i.leaf.NotAfter):
		return apierr.New(apierr.InvalidArgument, "the new certificate ends before the present one")
	}
	if i.dir != "" {
		if err := WriteCertificate(filepath.Join(i.dir, CertificateFile), der); err != nil {
			return err
		}
	}
	i.leaf = leaf
	return nil
}

// Shown is the certificate that this machine shows. The authority goes with it for those who know only its fingerprint.
func (i *Identity) Shown() *tls.Certificate {
	leaf := i.Leaf()
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw, i.authority.Raw}, PrivateKey: i.key, Leaf: leaf}
}
