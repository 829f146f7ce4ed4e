package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	"github.com/loopkeeper/loopkeeper/proto/identity"
)

// SecretBytes is the length of a token's secret.
const SecretBytes = 16

// Secret is what whoever holds a token knows. However it is formatted, logged or encoded, it does not show; Bytes does.
type Secret struct{ b [SecretBytes]byte }

const redacted = "(redacted)"

// SecretOf takes the bytes of a secret; ok is false for another length.
func SecretOf(b []byte) (s Secret, ok bool) {
	if len(b) != SecretBytes {
		return Secret{}, false
	}
	return Secret{[SecretBytes]byte(b)}, true
}

// Bytes is the secret itself, to send it.
func (s Secret) Bytes() []byte { return s.b[:] }

// Format implements fmt.Formatter for every verb.
func (Secret) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// LogValue implements slog.LogValuer.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText implements encoding.TextMarshaler.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Token is what a new machine is given: where the coordinator is, whom to believe there, and the right to join. Formatting
// shows no secret; Text does.
type Token struct {
	Addresses   []string             // of the enrolment service, host:port, best first
	Fingerprint identity.Fingerprint // of the authority
	Secret      Secret
}

// Format implements fmt.Formatter for every verb.
func (t Token) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "join token for %v, authority %.16s, secret %s", t.Addresses, t.Fingerprint, redacted)
}

// LogValue implements slog.LogValuer.
func (t Token) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(t)) }

// The text form is base32 (RFC 4648, no padding) of: the version, the fingerprint, the secret, and for each address its
// length in a byte and itself; then the checksum of all that.
const (
	tokenVersion  = 1
	checksumBytes = 4
	maxAddresses  = 8
	maxAddress    = 255
	maxTokenText  = 4096
	tokenHead     = 1 + len(identity.Fingerprint{}) + SecretBytes
)

var tokenText = base32.StdEncoding.WithPadding(base32.NoPadding)

// NewToken makes a token with a secret of its own. It admits nobody before a Book knows it.
func NewToken(addresses []string, f identity.Fingerprint) (Token, error) {
	t := Token{Addresses: addresses, Fingerprint: f}
	rand.Read(t.Secret.b[:])
	if len(addresses) == 0 || len(addresses) > maxAddresses {
		return Token{}, apierr.New(apierr.InvalidArgument, "a token carries 1 to %d addresses, not %d", maxAddresses, len(addresses))
	}
	for _, a := range addresses {
		if !validAddress(a) {
			return Token{}, apierr.New(apierr.InvalidArgument, "%.80q is not host:port", a)
		}
	}
	return t, nil
}

func validAddress(a string) bool {
	host, port, err := net.SplitHostPort(a)
	return err == nil && host != "" && port != "" && len(a) <= maxAddress && !strings.ContainsFunc(a, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Text is the token as a person copies it. It is a secret.
func (t Token) Text() string {
	b := append([]byte{tokenVersion}, t.Fingerprint[:]...)
	b = append(b, t.Secret.b[:]...)
	for _, a := range t.Addresses {
		b = append(append(b, byte(len(a))), a...)
	}
	return tokenText.EncodeToString(append(b, checksum(b)...))
}

func checksum(b []byte) []byte {
	sum := sha256.Sum256(append([]byte("loopkeeper join token\n"), b...))
	return sum[:checksumBytes]
}

// copied undoes what copying by hand or mail does to base32, which has no digits 0, 1 and 8.
var copied = strings.NewReplacer(" ", "", "\t", "", "\r", "", "\n", "", "-", "", "0", "O", "1", "I", "8", "B")

// ParseToken reads the text form. Errors are apierr.InvalidArgument, say whether it is a typo, and quote nothing of it.
func ParseToken(text string) (Token, error) {
	if len(text) > maxTokenText {
		return Token{}, notAToken("it is longer than any token")
	}
	b, err := tokenText.DecodeString(copied.Replace(strings.ToUpper(text)))
	if err != nil {
		return Token{}, notAToken("there is a character in it that no token has")
	}
	if len(b) < tokenHead+checksumBytes {
		return Token{}, notAToken("it is too short: a part is missing")
	}
	body, sum := b[:len(b)-checksumBytes], b[len(b)-checksumBytes:]
	if string(checksum(body)) != string(sum) {
		return Token{}, notAToken("its check does not hold: a character is wrong, missing or too many")
	}
	if body[0] != tokenVersion {
		return Token{}, apierr.New(apierr.IncompatibleVersion, "the token is of version %d, this release reads version %d", body[0], tokenVersion).
			WithNext("install the same release of loopkeeper on both machines")
	}
	var t Token
	rest := body[1:]
	rest = rest[copy(t.Fingerprint[:], rest):]
	rest = rest[copy(t.Secret.b[:], rest):]
	for len(rest) > 0 {
		n := int(rest[0])
		if len(rest) < 1+n || len(t.Addresses) == maxAddresses || !validAddress(string(rest[1:1+n])) {
			return Token{}, notAToken("its addresses cannot be read")
		}
		t.Addresses = append(t.Addresses, string(rest[1:1+n]))
		rest = rest[1+n:]
	}
	if len(t.Addresses) == 0 {
		return Token{}, notAToken("it names no address")
	}
	return t, nil
}

func notAToken(why string) error {
	return apierr.New(apierr.InvalidArgument, "this is not a join token: %s", why).
		WithNext("copy it again as a whole", "loopkeeper tokens create  # on the coordinator makes a new one")
}
