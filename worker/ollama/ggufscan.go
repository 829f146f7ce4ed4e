package ollama

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The bounds of a header, far above those of any model: DeepSeek V3 has 1,096 tensors, the largest vocabularies have 262,144
// tokens and twice as many merges.
const (
	maxHeader  = 512 << 20 // bytes
	maxKeys    = 1 << 14
	maxTensors = 1 << 17
	maxItems   = 1 << 22 // of a list
	maxText    = 16 << 20
	maxRank    = 8
)

// The types of the GGUF format (github.com/ggml-org/ggml, docs/gguf.md).
const (
	ggufText = 8
	ggufList = 9
)

// ggufSizes is the size of a value by its type, bytes; 0 for texts and lists.
var ggufSizes = [...]uint64{1, 1, 2, 2, 4, 4, 4, 1, ggufText: 0, ggufList: 0, 8, 8, 8}

// header is what a walk over the header of a GGUF file found that its decoder does not tell.
type header struct {
	vocabulary uint64 // length of tokenizer.ggml.tokens
	parts      uint64 // files that the model is split into; 0 and 1 mean one
}

// scan walks over a header. The first error stays, and all reads after it give zero.
type scan struct {
	r     *bufio.Reader
	order binary.ByteOrder
	err   error
}

// scanHeader checks that every length and count in a header is one that the file can hold and that a model can have.
func scanHeader(r io.ReaderAt, size int64) (header, error) {
	s := scan{r: bufio.NewReader(io.NewSectionReader(r, 0, min(size, maxHeader))), order: binary.LittleEndian}
	switch magic := s.number(4); {
	case s.err != nil || magic != 0x46554747 && magic != 0x47475546:
		return header{}, errors.New("it is not a GGUF file")
	case magic == 0x47475546:
		s.order = binary.BigEndian
	}
	if version := s.number(4); s.err == nil && version != 2 && version != 3 {
		return header{}, fmt.Errorf("it is of GGUF version %d; 2 and 3 are known", version)
	}
	tensors, keys := s.count("tensors", maxTensors), s.count("keys", maxKeys)
	var found header
	for range keys {
		s.pair(&found)
	}
	for range tensors {
		s.skipText()
		rank := s.number(4)
		if rank > maxRank {
			s.fail("a tensor of %d dimensions", rank)
		}
		s.skip(8*rank + 4 + 8)
	}
	return found, s.err
}

// pair walks over a key and its value.
func (s *scan) pair(found *header) {
	if s.err != nil {
		return
	}
	key := s.text()
	kind := s.number(4)
	switch {
	case kind == ggufText:
		s.skipText()
	case kind == ggufList:
		n := s.list()
		if key == "tokenizer.ggml.tokens" {
			found.vocabulary = n
		}
	case key == "split.count" && kind < uint64(len(ggufSizes)):
		found.parts = s.number(int(ggufSizes[kind]))
	case kind < uint64(len(ggufSizes)):
		s.skip(ggufSizes[kind])
	default:
		s.fail("a value of type %d", kind)
	}
}

// list walks over a list and returns its length.
func (s *scan) list() uint64 {
	kind := s.number(4)
	n := s.count("items of a list", maxItems)
	switch {
	case kind == ggufText:
		for range n {
			s.skipText()
		}
	case kind < uint64(len(ggufSizes)) && ggufSizes[kind] > 0:
		s.skip(n * ggufSizes[kind])
	default:
		s.fail("a list of type %d", kind)
	}
	return n
}

// number reads an unsigned number of so many bytes.
func (s *scan) number(bytes int) uint64 {
	var raw [8]byte
	if s.err != nil {
		return 0
	}
	if _, err := io.ReadFull(s.r, raw[:bytes]); err != nil {
		s.cut()
		return 0
	}
	switch bytes {
	case 1:
		return uint64(raw[0])
	case 2:
		return uint64(s.order.Uint16(raw[:]))
	case 4:
		return uint64(s.order.Uint32(raw[:]))
	default:
		return s.order.Uint64(raw[:])
	}
}

// count reads a 64-bit count; after an error it is 0, so that no loop turns on it.
func (s *scan) count(of string, most uint64) uint64 {
	n := s.number(8)
	if n > most {
		s.fail("%d %s", n, of)
		return 0
	}
	return n
}

// text reads a text, and returns nothing for one too long to be a key.
func (s *scan) text() string {
	n := s.count("bytes of a text", maxText)
	if n > 256 {
		s.skip(n)
		return ""
	}
	raw := make([]byte, n)
	if s.err == nil {
		if _, err := io.ReadFull(s.r, raw); err != nil {
			s.cut()
		}
	}
	return string(raw)
}

func (s *scan) skipText() { s.skip(s.count("bytes of a text", maxText)) }

func (s *scan) skip(bytes uint64) {
	if s.err != nil {
		return
	}
	if n, err := s.r.Discard(int(bytes)); err != nil || uint64(n) != bytes {
		s.cut()
	}
}

func (s *scan) cut() {
	if s.err == nil {
		s.err = errors.New("the file ends within its header")
	}
}

func (s *scan) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf("the header is damaged: it speaks of "+format, args...)
	}
}
