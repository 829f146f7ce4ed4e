package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// LineLimit is the most that one line of a batch over lines has, bytes: a call carries no more.
const LineLimit = 16 << 20

// IndexLines reads JSON lines and writes to index, for each line, the offset of its first byte, and then that of the end: 8 bytes each,
// big-endian. bad is told of every line that is no JSON, by its number from 1. It holds one line in memory.
func IndexLines(r io.Reader, index io.Writer, bad func(line int, why string)) (lines int, err error) {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	at, long := int64(0), false
	var offset [8]byte
	mark := func() error {
		binary.BigEndian.PutUint64(offset[:], uint64(at))
		_, err := index.Write(offset[:])
		return err
	}
	for begun := false; ; {
		piece, err := in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if !begun && len(piece) > 0 {
			if err := mark(); err != nil {
				return 0, err
			}
			lines, begun = lines+1, true
		}
		at += int64(len(piece))
		if long = long || len(line)+len(piece) > LineLimit; !long {
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if begun {
			if why := notJSON(line, long); why != "" {
				bad(lines, why)
			}
		}
		if errors.Is(err, io.EOF) {
			return lines, mark()
		}
		line, long, begun = line[:0], false, false
	}
}

// notJSON says why a line is no item, "" when it is one.
func notJSON(line []byte, long bool) string {
	switch {
	case long:
		return fmt.Sprintf("it has more than %d MiB, the most that a call carries", LineLimit>>20)
	case len(bytes.TrimSpace(line)) == 0:
		return "it is empty"
	case json.Valid(line):
		return ""
	}
	var v any
	return json.Unmarshal(line, &v).Error()
}

// lines adds to a request over lines what the state has to know of their artifact. Lines that are no JSON become failed items, before
// any call. A request whose artifact is not there is refused.
func (e *Engine) lines(ctx context.Context, r *run.Request) (bad []run.Reject, err error) {
	over, ok := overLines(r)
	if !ok {
		return nil, nil
	}
	body, _, err := e.o.Bodies.OpenArtifact(ctx, over.SHA256)
	if code := apierr.CodeOf(err); code == apierr.NotFound || code == apierr.InvalidArgument {
		r.Refused = fmt.Sprintf("batch: the lines %s of the items are not there: %v", over.Name, err)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the lines of step %d: %w", r.Pos, err)
	}
	defer body.Close()
	count, index, err := e.index(ctx, over.Name, body, func(line int, why string) {
		bad = append(bad, run.Reject{Pos: r.Pos, Item: line - 1, Failure: run.Failure{Kind: run.KindBadRequest, Advice: run.Never,
			Message: fmt.Sprintf("line %d of %s is not JSON: %s", line, over.Name, why)}})
	})
	if err != nil {
		return nil, fmt.Errorf("index the lines of step %d: %w", r.Pos, err)
	}
	r.Lines = &run.Lines{Count: count, Index: index}
	return bad, nil
}

// overLines is the artifact that a batch is over, false when its items are in the request.
func overLines(r *run.Request) (Ref, bool) {
	var req struct {
		Items struct {
			Lines Ref `json:"lines"`
		} `json:"items"`
	}
	if r.Kind != run.KindBatch || r.Note || !bytes.Contains(r.Body, []byte(`"items":{"lines":`)) || json.Unmarshal(r.Body, &req) != nil {
		return Ref{}, false
	}
	return req.Items.Lines, req.Items.Lines.SHA256 != ""
}

// mostAbout is the most of a line that a check is given, bytes.
const mostAbout = 64 << 10

// about is the line that a check is given as its item; of a long one, where it is.
func (e *Engine) about(ctx context.Context, l run.Line) (json.RawMessage, error) {
	entry, err := e.o.Bodies.ReadArtifactAt(ctx, l.Index, 8*int64(l.At), 16)
	if err != nil {
		return nil, err
	}
	if len(entry) < 16 {
		return nil, apierr.New(apierr.LedgerCorrupt, "the index of the lines ends before line %d", l.At+1)
	}
	from, to := int64(binary.BigEndian.Uint64(entry)), int64(binary.BigEndian.Uint64(entry[8:]))
	if to-from > mostAbout {
		return canonical(struct {
			Ref
			Line int `json:"line"`
		}{Ref{Name: l.Name, SHA256: l.Ref, Bytes: to - from}, l.At + 1})
	}
	line, err := e.o.Bodies.ReadArtifactAt(ctx, l.Ref, from, int(to-from))
	return bytes.TrimSpace(line), err
}

// index stores the index of lines while it is made.
func (e *Engine) index(ctx context.Context, name string, lines io.Reader, bad func(int, string)) (count int, sha string, err error) {
	from, to := io.Pipe()
	stored := make(chan error, 1)
	var art ledger.Artifact
	go func() {
		var err error
		art, err = e.o.Store.PutArtifact(ctx, "index of "+name, from)
		from.CloseWithError(err)
		stored <- err
	}()
	buffered := bufio.NewWriter(to)
	count, err = IndexLines(lines, buffered, bad)
	if err == nil {
		err = buffered.Flush()
	}
	to.CloseWithError(err)
	if failed := <-stored; err == nil {
		err = failed
	}
	return count, art.SHA256, err
}
