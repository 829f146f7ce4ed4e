package enrol

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/loopkeeper/loopkeeper/proto/identity"
)

// nonceBytes is the length of what each side adds to a code.
const nonceBytes = 32

// commit is what the machine says first. It binds the machine before it sees the coordinator's nonce, so that nobody in
// between can look for values that make two codes equal (as in Bluetooth's numeric comparison: commitment, nonces, digits).
func commit(nonce, csr []byte) [sha256.Size]byte {
	return sha256.Sum256(append(append([]byte("loopkeeper commitment\n"), nonce...), csr...))
}

// code is the six digits that both sides show. Whoever relays has another authority or another request, so other digits.
func code(machine, coordinator, csr []byte, authority identity.Fingerprint) string {
	request := sha256.Sum256(csr)
	b := append([]byte("loopkeeper code\n"), machine...)
	b = append(append(append(b, coordinator...), request[:]...), authority[:]...)
	sum := sha256.Sum256(b)
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(sum[:])%1_000_000)
}
