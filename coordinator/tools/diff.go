package tools

import (
	"bytes"
	"io"
	"os"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/diff"
)

// DiffLimit is up to which size in bytes, of the old text and of the new one, the evidence of a write holds the difference.
const DiffLimit = 64 << 10

// difference says what the file temp changes in the file name, which holds what now says; nothing when one of them is no short text.
func (s *space) difference(name, temp string, now Evidence) []Evidence {
	var old []byte
	if now.Exists {
		var ok bool
		if old, ok = s.shortText(name); !ok {
			return nil
		}
	}
	text, ok := s.shortText(temp)
	if !ok {
		return nil
	}
	changes := diff.Diff("before/"+slash(name), old, "after/"+slash(name), text)
	if len(changes) == 0 {
		return nil
	}
	return []Evidence{{Kind: DiffEvidence, Workspace: s.Name, Path: slash(name), Text: string(changes)}}
}

// shortText reads a text of up to DiffLimit; ok is false for anything else. What cannot be read shows in the write itself.
func (s *space) shortText(name string) (text []byte, ok bool) {
	f, err := s.root.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close() //nolint:errcheck // only read
	text, err = io.ReadAll(io.LimitReader(f, DiffLimit+1))
	if err != nil || len(text) > DiffLimit || !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, false
	}
	return text, true
}
