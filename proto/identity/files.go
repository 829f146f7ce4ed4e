package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// maxFile is more than any key or certificate of ours, bytes.
const maxFile = 64 << 10

const (
	keyBlock         = "PRIVATE KEY"
	certificateBlock = "CERTIFICATE"
)

// KeyAt reads the P-256 key in the file, or makes one there, mode 0600 from the start. A key that others may read is refused.
func KeyAt(path string) (*ecdsa.PrivateKey, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newKey(path)
	}
	if err != nil {
		return nil, apierr.Wrap(err, apierr.Unavailable, "read the key")
	}
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, apierr.New(apierr.Conflict, "the key %s has mode %04o: others on this machine may have read it", path, mode).
			WithNext("delete "+path+" and join again, when somebody else uses this machine", "chmod 600 '"+path+"'  # when nobody does")
	}
	der, err := readBlock(path, keyBlock)
	if err != nil {
		return nil, err
	}
	any, err := x509.ParsePKCS8PrivateKey(der)
	key, ok := any.(*ecdsa.PrivateKey)
	if err != nil || !ok || key.Curve != elliptic.P256() {
		return nil, unreadable(path) // err is left out: it could quote the key
	}
	return key, nil
}

func newKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.Internal, "make a key")
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.Internal, "encode a key")
	}
	return key, replace(path, keyBlock, der)
}

// Request makes the certificate request of a key, PKCS #10 in DER. It carries no name: the authority decides on that.
func Request(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.Internal, "make a certificate request")
	}
	return der, nil
}

// CertificateAt reads the certificate in the file; fs.ErrNotExist is in the error's chain when there is none.
func CertificateAt(path string) (*x509.Certificate, error) {
	der, err := readBlock(path, certificateBlock)
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, unreadable(path)
	}
	return c, nil
}

// WriteCertificate replaces the file as a whole by the certificate, given in DER.
func WriteCertificate(path string, der []byte) error { return replace(path, certificateBlock, der) }

func readBlock(path, kind string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.NotFound, "read this machine's identity")
	}
	if info.Size() > maxFile {
		return nil, unreadable(path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.Unavailable, "read this machine's identity")
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, unreadable(path)
	}
	return block.Bytes, nil
}

func unreadable(path string) error {
	return apierr.New(apierr.InvalidArgument, "%s does not hold what loopkeeper writes there", path).
		WithNext("bring it back from a backup, or delete the folder's identity and join again")
}

// replace writes a file that only its owner may read, in one step: a crash leaves the old one or the new one.
func replace(path, kind string, der []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return apierr.Wrap(err, apierr.Unavailable, "write this machine's identity")
	}
	err = pem.Encode(f, &pem.Block{Type: kind, Bytes: der})
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return apierr.Wrap(errors.Join(err, os.Remove(f.Name())), apierr.Unavailable, "write this machine's identity")
	}
	return nil
}
