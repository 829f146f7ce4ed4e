package dispatch

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// line is one line of an artifact of JSON lines, found by its index: two small reads, however large the artifact is.
func (d *Dispatcher) line(ctx context.Context, l run.Line) (json.RawMessage, error) {
	entry, err := d.o.Store.ReadArtifactAt(ctx, l.Index, 8*int64(l.At), 16)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.NotFound, "read where line %d is", l.At+1)
	}
	if len(entry) < 16 {
		return nil, apierr.New(apierr.LedgerCorrupt, "the index of the lines ends before line %d", l.At+1)
	}
	from, to := binary.BigEndian.Uint64(entry), binary.BigEndian.Uint64(entry[8:])
	switch n := to - from; {
	case to < from || to > mostBytes:
		return nil, apierr.New(apierr.LedgerCorrupt, "the index of the lines is wrong about line %d", l.At+1)
	case n > BodyLimit:
		return nil, apierr.New(apierr.InvalidArgument, "line %d has %d bytes, a call carries at most %d", l.At+1, n, BodyLimit).WithNext("split the document")
	}
	raw, err := d.o.Store.ReadArtifactAt(ctx, l.Ref, int64(from), int(to-from))
	if err != nil {
		return nil, apierr.Wrap(err, apierr.NotFound, "read line %d", l.At+1)
	}
	if raw = bytes.TrimSpace(raw); !json.Valid(raw) { // neither is an empty one
		return nil, apierr.New(apierr.InvalidArgument, "line %d is not JSON", l.At+1).WithNext("correct the file and submit it again")
	}
	return raw, nil
}
