package ledger

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
)

// Reference is a body that an event names: a string of its payload that is a digest.
type Reference struct {
	Key    string // where it stands: the last two keys that lead to it, lists apart, such as "result.ref"; "raw" at the top
	SHA256 string
}

// References returns the digests in a payload, in their order. One need not be the name of an artifact.
func References(payload json.RawMessage) []Reference {
	var found []Reference
	var path []string // the keys of the objects that are open, "" for a list
	var isList []bool
	key, wantKey := "", false
	for d := json.NewDecoder(bytes.NewReader(payload)); ; {
		tok, err := d.Token()
		if err != nil { // the end: what the ledger holds is valid JSON
			return found
		}
		switch v := tok.(type) {
		case json.Delim:
			if v == '{' || v == '[' {
				path, isList, key = append(path, key), append(isList, v == '['), ""
			} else {
				key, path, isList = "", path[:len(path)-1], isList[:len(isList)-1]
			}
		case string:
			if wantKey {
				key = v
				wantKey = false
				continue
			}
			if isDigest(v) {
				found = append(found, Reference{Key: lastKeys(path, key), SHA256: v})
			}
		}
		wantKey = len(isList) > 0 && !isList[len(isList)-1]
	}
}

// lastKeys joins the last two keys that are not lists' empty ones.
func lastKeys(path []string, key string) string {
	for i := len(path) - 1; i >= 0; i-- {
		switch {
		case path[i] == "":
		case key == "":
			key = path[i]
		default:
			return path[i] + "." + key
		}
	}
	return key
}

// digest is a SHA-256 in binary: half the memory of its text.
type digest [32]byte

// digestScanner is a writer that tells of every digest in what is written to it: 64 lower-case hex digits between other characters.
// It finds them anywhere, in JSON, in text, in a list of files.
type digestScanner struct {
	tell func(digest)
	run  int // hex digits in a row so far, beyond 64 all the same
	sum  digest
}

func (s *digestScanner) Write(p []byte) (int, error) {
	for _, c := range p {
		n := nibbles[c]
		if n < 0 {
			s.end()
			continue
		}
		if s.run < 64 {
			if s.run%2 == 0 {
				s.sum[s.run/2] = byte(n) << 4
			} else {
				s.sum[s.run/2] |= byte(n)
			}
		}
		s.run++
	}
	return len(p), nil
}

// end says that nothing follows for now.
func (s *digestScanner) end() {
	if s.run == 64 {
		s.tell(s.sum)
	}
	s.run = 0
}

// nibbles has the value of every lower-case hex digit, and -1 for the rest.
var nibbles = func() (table [256]int8) {
	for i := range table {
		table[i] = -1
	}
	for i, c := range []byte("0123456789abcdef") {
		table[c] = int8(i)
	}
	return table
}()

// scan tells of every digest in r.
func scan(r io.Reader, tell func(digest)) error {
	s := digestScanner{tell: tell}
	_, err := io.Copy(&s, r)
	s.end()
	return err
}

func scanText(text []byte, tell func(digest)) {
	s := digestScanner{tell: tell}
	_, _ = s.Write(text) // cannot fail
	s.end()
}

// parseDigest returns the digest that text, which isDigest, says in hex.
func parseDigest(text string) (d digest) {
	scanText([]byte(text), func(found digest) { d = found })
	return d
}

func (d digest) String() string { return hex.EncodeToString(d[:]) }
