package api

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// artifactLimit is the largest artifact a client may store, bytes: lines of a batch come in one, and go to disk as they come. What a call
// carries is bounded apart, at submission.
const artifactLimit = 1 << 30

// PutArtifact implements the service. It takes text only: a binary file given by mistake would reach a model as noise.
func (s *Server) PutArtifact(stream coordinatorv1.CoordinatorService_PutArtifactServer) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return apierr.ToStatus(apierr.New(apierr.InvalidArgument, "nothing was sent"))
	}
	if err != nil {
		return err
	}
	r := &textReader{name: first.GetName(), rest: first.GetChunk(), limit: artifactLimit, next: func() ([]byte, error) {
		msg, err := stream.Recv()
		return msg.GetChunk(), err
	}}
	a, err := s.o.Store.PutArtifact(stream.Context(), first.GetName(), r)
	if r.refused != nil { // the store adds what it did when it was refused, which helps nobody
		err = r.refused
	}
	if err != nil {
		return apierr.ToStatus(err)
	}
	return stream.SendAndClose(&coordinatorv1.PutArtifactResponse{Ref: &coordinatorv1.Ref{Sha256: a.SHA256, Name: first.GetName(), Bytes: uint64(a.Size)}})
}

// textReader passes chunks on and refuses what is not UTF-8 text.
type textReader struct {
	name    string
	next    func() ([]byte, error)
	rest    []byte // of the chunk at hand, to be read
	tail    []byte // first bytes of a character that was cut
	size    int
	limit   int // bytes
	refused error
}

// Read implements io.Reader.
func (r *textReader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 {
		chunk, err := r.next()
		if errors.Is(err, io.EOF) && len(r.tail) > 0 {
			return 0, r.refuse("is not UTF-8 text", notText)
		}
		if err != nil {
			return 0, err
		}
		r.rest = chunk
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	if r.size += n; r.size > r.limit {
		return 0, r.refuse(fmt.Sprintf("is larger than %d MiB, the most that one text may have", r.limit>>20), "split it, and start a run for each part")
	}
	if !r.text(p[:n]) {
		return 0, r.refuse("is not UTF-8 text", notText)
	}
	return n, nil
}

const notText = "convert it to text first, such as with pdftotext, pandoc or iconv"

func (r *textReader) refuse(why, next string) error {
	name := r.name
	if name == "" {
		name = "the text"
	}
	r.refused = apierr.New(apierr.InvalidArgument, "%s %s", name, why).WithNext(next)
	return r.refused
}

// text says whether p goes on as UTF-8 without NUL. A character that p's end cuts is judged with what follows.
func (r *textReader) text(p []byte) bool {
	data := append(r.tail, p...)
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		if c == utf8.RuneError && size == 1 && !utf8.FullRune(data) {
			break
		}
		if c == 0 || c == utf8.RuneError && size == 1 {
			return false
		}
		data = data[size:]
	}
	r.tail = append([]byte(nil), data...)
	return true
}

// chunkBytes is how much of a body one message carries.
const chunkBytes = 256 << 10

// GetArtifact implements the service.
func (s *Server) GetArtifact(r *coordinatorv1.GetArtifactRequest, stream coordinatorv1.CoordinatorService_GetArtifactServer) error {
	f, _, err := s.o.Store.OpenArtifact(stream.Context(), r.GetSha256())
	if err != nil {
		return apierr.ToStatus(err)
	}
	defer f.Close() //nolint:errcheck // only read
	buf := make([]byte, chunkBytes)
	for {
		n, err := f.Read(buf)
		if n > 0 {
			if err := stream.Send(&coordinatorv1.GetArtifactResponse{Chunk: buf[:n]}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return apierr.ToStatus(err)
		}
	}
}
