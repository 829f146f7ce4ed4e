package engine

import (
	"context"
	"io"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
)

// Bodies opens what is stored by hash. It is a port of its own, because the loop, the state machine and the scheduler decide by sizes and
// hashes alone: only who carries something out opens a body. The methods are those of ledger.Store.
type Bodies interface {
	OpenArtifact(ctx context.Context, sha string) (io.ReadCloser, ledger.Artifact, error)
	ReadArtifactAt(ctx context.Context, sha string, off int64, n int) ([]byte, error)
}

// body reads a whole artifact.
func (e *Engine) body(ctx context.Context, sha string) ([]byte, error) {
	r, _, err := e.o.Bodies.OpenArtifact(ctx, sha)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
