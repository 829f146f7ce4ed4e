package script

import (
	"bytes"
	"fmt"
)

// Divergence is a program that, replayed, asked for something else than the ledger has. It ends the run as diverged.
type Divergence struct {
	Pos      int     // the first position that differs
	Expected Request // what the ledger has
	Got      Request // what the program asked for now
}

// Compare says whether the request that a replay made is the recorded one: the same position, kind and canonical body.
// It returns a *Divergence when not.
func Compare(recorded, got Request) error {
	if recorded.Pos == got.Pos && recorded.Kind == got.Kind && sameBody(recorded.Body, got.Body) {
		return nil
	}
	return &Divergence{Pos: recorded.Pos, Expected: recorded, Got: got}
}

// sameBody looks twice, because a body that went through encoding/json may have come back with other escapes. What is
// refused today may be in an older record, so it is compared all the same.
func sameBody(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	left, err := canonical(a)
	if err != nil {
		return false
	}
	right, err := canonical(b)
	return err == nil && bytes.Equal(left, right)
}

// Error names the position and shows expected and got around the first byte that differs.
func (d *Divergence) Error() string {
	if d.Expected.Pos != d.Got.Pos {
		return fmt.Sprintf("the replay diverged at position %d: got position %d", d.Pos, d.Got.Pos)
	}
	if d.Expected.Kind != d.Got.Kind {
		return fmt.Sprintf("the replay diverged at position %d: the ledger has %s, the script asked for %s", d.Pos, d.Expected.Kind, d.Got.Kind)
	}
	at := 0
	for at < min(len(d.Expected.Body), len(d.Got.Body)) && d.Expected.Body[at] == d.Got.Body[at] {
		at++
	}
	return fmt.Sprintf("the replay diverged at position %d (%s), byte %d of the request: the ledger has %s, the script asked for %s",
		d.Pos, d.Expected.Kind, at, around(d.Expected.Body, at), around(d.Got.Body, at))
}

// around returns some 80 bytes of text about position at, quoted.
func around(text []byte, at int) string {
	return fmt.Sprintf("%q", text[max(0, at-20):min(len(text), at+60)])
}
