package trust

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// MaxRequest is the longest certificate request that is read, bytes. One of a P-256 key without names takes about 200.
const MaxRequest = 4096

// keyOfRequest returns the key that a request proves to hold. Nothing else in it is used: a caller does not choose its name.
func keyOfRequest(der []byte) (*ecdsa.PublicKey, error) {
	if len(der) > MaxRequest {
		return nil, apierr.New(apierr.InvalidArgument, "the certificate request has %d bytes, more than %d", len(der), MaxRequest)
	}
	r, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return nil, apierr.New(apierr.InvalidArgument, "the certificate request cannot be read")
	}
	key, ok := r.PublicKey.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, apierr.New(apierr.InvalidArgument, "the certificate request is not of a P-256 key")
	}
	if err := r.CheckSignature(); err != nil {
		return nil, apierr.New(apierr.InvalidArgument, "the certificate request does not prove that its sender has the key")
	}
	return key, nil
}

// randomBytes returns n random bytes. crypto/rand never fails: it ends the process before it would.
func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b)
	return b
}
