package answers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// Next is the link of a chain after l, see coordinator/ledger/README.md, "The chain". It is computed here once more, so that an audit
// does not take the ledger's word for it.
func (l ChainEnd) Next(run string, seq int64, at time.Time, kind string, payload []byte) ChainEnd {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%d\n%s\n%s\n%s", l.Hash, run, seq, at.UTC().Format("2006-01-02T15:04:05.000000000Z"), kind, payload)
	return ChainEnd{Seq: seq, Hash: hex.EncodeToString(h.Sum(nil))}
}
