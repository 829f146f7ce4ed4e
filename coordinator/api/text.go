package api

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/loopkeeper/loopkeeper/coordinator/dispatch"
	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// artifactLimit is the largest artifact a client may store, bytes: lines of a batch come in one, and go to disk as they come. What a call
// carries is bounded apart, at submission.
const artifactLimit = 1 << 30

// PutArtifact implements the service. It takes texts and images only: another file given by mistake would reach a model as noise.
func (s *Server) PutArtifact(stream coordinatorv1.CoordinatorService_PutArtifactServer) error {
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return apierr.ToStatus(apierr.New(apierr.InvalidArgument, "nothing was sent"))
	}
	if err != nil {
		return err
	}
	in := bufio.NewReader(&chunks{first.GetChunk(), func() ([]byte, error) {
		msg, err := stream.Recv()
		return msg.GetChunk(), err
	}})
	r := &bodyReader{name: first.GetName(), in: in, limit: artifactLimit}
	if head, _ := in.Peek(params.ImageHead); params.Image(head) { // its error is that of the next read
		r.image, r.limit = true, dispatch.BodyLimit
	}
	a, err := s.o.Store.PutArtifact(stream.Context(), first.GetName(), r)
	if r.refused != nil { // the store adds what it did when it was refused, which helps nobody
		err = r.refused
	}
	if err != nil {
		return apierr.ToStatus(err)
	}
	return stream.SendAndClose(&coordinatorv1.PutArtifactResponse{Ref: &coordinatorv1.Ref{Sha256: a.SHA256, Name: first.GetName(), Bytes: uint64(a.Size)}})
}

// chunks are the bytes of messages.
type chunks struct {
	rest []byte // of the one at hand, to be read
	next func() ([]byte, error)
}

// Read implements io.Reader.
func (c *chunks) Read(p []byte) (n int, err error) {
	for len(c.rest) == 0 {
		if c.rest, err = c.next(); err != nil {
			return 0, err
		}
	}
	n = copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// bodyReader passes a body on and refuses what is too large, and what is not UTF-8 text unless it is an image.
type bodyReader struct {
	name    string
	in      io.Reader
	image   bool
	tail    []byte // first bytes of a character that was cut
	size    int
	limit   int // bytes
	refused error
}

// Read implements io.Reader.
func (r *bodyReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if r.size += n; r.size > r.limit {
		return 0, r.tooLarge()
	}
	if !r.image && (!r.text(p[:n]) || errors.Is(err, io.EOF) && len(r.tail) > 0) {
		return 0, r.refuse("is not UTF-8 text", notText)
	}
	return n, err
}

func (r *bodyReader) tooLarge() error {
	what, next := "text", "split it, and start a run for each part"
	if r.image {
		what, next = "image", "make it smaller: models see about a megapixel"
	}
	return r.refuse(fmt.Sprintf("is larger than %d MiB, the most that one %s may have", r.limit>>20, what), next)
}

const notText = "convert it to text first, such as with pdftotext, pandoc or iconv; images are taken as PNG, JPEG, WebP or GIF"

func (r *bodyReader) refuse(why, next string) error {
	name := r.name
	if name == "" {
		name = "the text"
	}
	r.refused = apierr.New(apierr.InvalidArgument, "%s %s", name, why).WithNext(next)
	return r.refused
}

// text says whether p goes on as UTF-8 without NUL. A character that p's end cuts is judged with what follows.
func (r *bodyReader) text(p []byte) bool {
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
