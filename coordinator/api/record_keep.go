package api

import (
	"context"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// ExportRun implements the service.
func (r *records) ExportRun(q *coordinatorv1.ExportRunRequest, stream coordinatorv1.RecordService_ExportRunServer) error {
	id, err := r.s.o.Engine.Resolve(stream.Context(), q.GetRunId())
	if err != nil {
		return apierr.ToStatus(err)
	}
	w := &chunkWriter{send: func(chunk []byte) error { return stream.Send(&coordinatorv1.ExportRunResponse{Chunk: chunk}) }}
	if err := r.s.o.Store.Export(stream.Context(), id, w); err != nil {
		return apierr.ToStatus(err)
	}
	return w.flush()
}

// chunkWriter gathers small writes into messages.
type chunkWriter struct {
	send func([]byte) error
	buf  []byte
}

func (w *chunkWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	if len(w.buf) < chunkBytes {
		return len(p), nil
	}
	return len(p), w.flush()
}

func (w *chunkWriter) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	chunk := w.buf
	w.buf = nil
	return w.send(chunk)
}

// ImportRun implements the service.
func (r *records) ImportRun(stream coordinatorv1.RecordService_ImportRunServer) error {
	var ended []string
	for _, s := range run.Statuses() {
		if s.Ended() {
			ended = append(ended, string(s))
		}
	}
	in, err := r.s.o.Store.Import(stream.Context(), &chunkReader{next: func() ([]byte, error) {
		m, err := stream.Recv()
		return m.GetChunk(), err
	}}, ended)
	if err != nil {
		return apierr.ToStatus(err)
	}
	head, err := r.s.o.Store.Head(stream.Context(), in.Run.ID)
	if err != nil {
		return apierr.ToStatus(err)
	}
	return stream.SendAndClose(&coordinatorv1.ImportRunResponse{RunId: in.Run.ID, Existing: in.Known, Events: head.Seq, Bodies: in.Bodies, Bytes: in.Bytes,
		Pruned: in.Pruned, KeyOwner: in.KeyOwner})
}

// chunkReader reads messages as one stream.
type chunkReader struct {
	next func() ([]byte, error)
	rest []byte
}

func (c *chunkReader) Read(p []byte) (int, error) {
	for len(c.rest) == 0 {
		var err error
		if c.rest, err = c.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// VerifyLedger implements the service.
func (r *records) VerifyLedger(ctx context.Context, _ *coordinatorv1.VerifyLedgerRequest) (*coordinatorv1.VerifyLedgerResponse, error) {
	rep, err := r.s.o.Store.Verify(ctx)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out := &coordinatorv1.VerifyLedgerResponse{Runs: rep.Runs, Events: rep.Events, Artifacts: rep.Artifacts, ArtifactBytes: rep.ArtifactBytes, Pruned: rep.Pruned}
	for _, p := range rep.Problems {
		out.Problems = append(out.Problems, &coordinatorv1.Problem{Subject: p.Subject, Detail: p.Detail})
	}
	return out, nil
}

// BackUp implements the service.
func (r *records) BackUp(ctx context.Context, q *coordinatorv1.BackUpRequest) (*coordinatorv1.BackUpResponse, error) {
	path := q.GetPath()
	if !filepath.IsAbs(path) {
		return nil, apierr.ToStatus(apierr.New(apierr.InvalidArgument, "the backup's folder %q is no absolute path on the coordinator's machine", path).
			WithNext("loopkeeper backup /a/folder/that/does/not/exist"))
	}
	began := time.Now()
	if err := r.s.o.Store.Backup(ctx, filepath.Clean(path)); err != nil {
		return nil, apierr.ToStatus(err)
	}
	out := &coordinatorv1.BackUpResponse{Nanos: int64(time.Since(began))}
	err := filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			out.Bytes += info.Size()
		}
		return err
	})
	if err != nil {
		return nil, apierr.ToStatus(apierr.Wrap(err, apierr.Internal, "measure the backup, which is written"))
	}
	return out, nil
}
