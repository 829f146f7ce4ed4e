package ledger

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
)

// summed reads the files of an export and makes the list that SHA256SUMS must be, of which it keeps the hash: there may be millions.
type summed struct {
	in   *tar.Reader
	name string    // of the file that is read, "" before the first
	file hash.Hash // of what was read of it
	all  hash.Hash // of the lines of the files before it
}

func newSummed(in *tar.Reader) *summed { return &summed{in: in, file: sha256.New(), all: sha256.New()} }

// Next goes to the next file; what is left of the one before it counts as read.
func (s *summed) Next() (*tar.Header, error) {
	if s.name != "" {
		if _, err := io.Copy(io.Discard, s); err != nil {
			return nil, err
		}
		fmt.Fprintf(s.all, "%x  %s\n", s.file.Sum(nil), s.name) // a hash takes everything
	}
	h, err := s.in.Next()
	if err == nil {
		s.name = strings.TrimPrefix(h.Name, archiveFolder)
		s.file.Reset()
	}
	return h, err
}

// Read implements io.Reader.
func (s *summed) Read(p []byte) (int, error) {
	n, err := s.in.Read(p)
	s.file.Write(p[:n]) // likewise
	return n, err
}

// zeros takes what follows the end of a tar file: nothing but padding.
type zeros struct{}

func (zeros) Write(p []byte) (int, error) {
	for _, b := range p {
		if b != 0 {
			return 0, errors.New("something follows its end")
		}
	}
	return len(p), nil
}
