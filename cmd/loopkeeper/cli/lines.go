package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// lines gives a parameter what is to be worked on one by one and too long for a list: the lines of a file, or the files of a folder,
// as a list of references that is a file of lines itself.
func (p *paramReader) lines(ctx context.Context, path string) (any, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.NotFound, "read %s", path)
	}
	var r ref
	if info.IsDir() {
		r, err = p.folder(ctx, path)
	} else {
		r, err = uploadLines(ctx, p.c, path)
	}
	return map[string]any{"lines": r}, err
}

// uploadLines stores a file of lines without holding it in memory.
func uploadLines(ctx context.Context, c *client, path string) (ref, error) {
	f, err := os.Open(path)
	if err != nil {
		return ref{}, apierr.Wrap(err, apierr.NotFound, "read %s", path)
	}
	defer f.Close() //nolint:errcheck // only read
	return uploadFrom(ctx, c, path, f)
}

// folder uploads the files of a folder and then the list of them.
func (p *paramReader) folder(ctx context.Context, path string) (ref, error) {
	found, _, err := inputs(ctx, []string{path}, "")
	if err != nil {
		return ref{}, err
	}
	refs, err := p.a.bodies(ctx, p.c, found)
	if err != nil {
		return ref{}, err
	}
	var list bytes.Buffer
	for _, r := range refs {
		line, err := json.Marshal(r)
		if err != nil {
			return ref{}, err
		}
		list.Write(append(line, '\n'))
	}
	return uploadFrom(ctx, p.c, path, &list)
}

// uploadFrom stores what r yields under a name.
func uploadFrom(ctx context.Context, c *client, path string, r io.Reader) (ref, error) {
	stream, err := c.PutArtifact(ctx)
	if err != nil {
		return ref{}, err
	}
	name, chunk := path, make([]byte, chunkBytes)
	for first := true; ; first = false {
		n, err := io.ReadFull(r, chunk)
		if n > 0 || first {
			sent := stream.Send(&coordinatorv1.PutArtifactRequest{Chunk: chunk[:n], Name: name})
			if errors.Is(sent, io.EOF) {
				break // the reason comes with the answer
			}
			if sent != nil {
				return ref{}, sent
			}
		}
		name = ""
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			break
		}
		if err != nil {
			return ref{}, apierr.Wrap(err, apierr.InvalidArgument, "read %s", path)
		}
	}
	out, err := stream.CloseAndRecv()
	if err != nil {
		return ref{}, apierr.Wrap(apierr.FromStatus(err), apierr.Unavailable, "upload %s", path)
	}
	return ref{out.GetRef().GetSha256(), path, out.GetRef().GetBytes()}, nil
}
