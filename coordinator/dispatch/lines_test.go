package dispatch

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

// counting counts what is read of bodies.
type counting struct {
	ledger.Store
	read int
	sha  string // of the one that must not be opened whole
}

func (c *counting) ReadArtifactAt(ctx context.Context, sha string, off int64, n int) ([]byte, error) {
	b, err := c.Store.ReadArtifactAt(ctx, sha, off, n)
	c.read += len(b)
	return b, err
}

func (c *counting) OpenArtifact(ctx context.Context, sha string) (io.ReadCloser, ledger.Artifact, error) {
	if sha == c.sha {
		return nil, ledger.Artifact{}, fmt.Errorf("artifact %s is opened whole", sha)
	}
	return c.Store.OpenArtifact(ctx, sha)
}

// at names line i of an artifact with lines, whose index is made by hand.
func (r *rig) at(lines string, i int) *run.Line {
	r.t.Helper()
	var index []byte
	for off, rest := 0, lines; ; {
		index = binary.BigEndian.AppendUint64(index, uint64(off))
		if rest == "" {
			break
		}
		n := strings.Index(rest, "\n") + 1
		if n == 0 {
			n = len(rest)
		}
		off, rest = off+n, rest[n:]
	}
	r.put("data.jsonl", lines)
	art, err := r.store.PutArtifact(r.t.Context(), "index", bytes.NewReader(index))
	if err != nil {
		r.t.Fatal(err)
	}
	return &run.Line{Ref: ledger.Digest([]byte(lines)), Index: art.SHA256, At: i}
}

func TestALineIsTwoSmallReads(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		ref := r.put("notes.md", "the pump ran")
		lines := strings.Repeat("\"filler\"\n", 50_000) + "\"a text\"\n" + `{"n":1}` + "\r\n" + ref + "\nnull"
		for i, want := range map[int]*workerv1.Body{0: value("", "filler"), 50_000: value("", "a text"), 50_001: value("", `{"n":1}`),
			50_002: value("notes.md", "the pump ran"), 50_003: value("", "null")} {
			a := attempt(fmt.Sprint("k", i), engine.CallGenerate, `{"prompt":"{{item}}"}`, "")
			a.Line = r.at(lines, i)
			store := &counting{Store: r.store, sha: a.Line.Ref}
			r.d.o.Store = store
			if got := r.one(a); got.Failure != nil {
				t.Fatalf("line %d: %+v", i, got.Failure)
			}
			asked := r.m.requests()
			item := asked[len(asked)-1].(*workerv1.GenerateRequest).GetItem()
			if item.GetText() != want.GetText() || item.GetName() != want.GetName() || store.read > 200 {
				t.Errorf("line %d is sent as %q of %q after %d bytes were read", i, item.GetText(), item.GetName(), store.read)
			}
		}
	})
}

func TestAJudgeIsGivenTheLineAsASource(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		a := attempt("k", engine.CallEvaluate, `{"criteria":["c"],"model":"j","sources":["the rules"]}`, `"the result"`)
		a.Line = r.at("\"one\"\n\"two\"\n", 1)
		r.one(a)
		e := r.m.requests()[0].(*workerv1.EvaluateRequest)
		if got := texts(e.GetSources()); strings.Join(got, "|") != "the rules|two" || e.GetSubject().GetText() != "the result" {
			t.Errorf("%q judged by %q", e.GetSubject().GetText(), got)
		}
	})
}

func TestALineThatCannotBeSent(t *testing.T) {
	inBubble(t, func(t *testing.T, r *rig) {
		lines := "\"one\"\nnot JSON\n\n\"two\"\n"
		gone := *r.at(lines, 0)
		gone.Ref = strings.Repeat("0", 64)
		wrong := *r.at(lines, 0)
		wrong.Index = ledger.Digest([]byte("0123456789abcdefghijklmn"))
		r.put("no index", "0123456789abcdefghijklmn")
		for name, c := range map[string]struct {
			line run.Line
			says string
		}{
			"no JSON":       {*r.at(lines, 1), "line 2 is not JSON"},
			"empty":         {*r.at(lines, 2), "line 3 is not JSON"},
			"beyond":        {*r.at(lines, 4), "ends before line 5"},
			"gone":          {gone, "read line 1"},
			"a wrong index": {wrong, "wrong about line 1"},
		} {
			a := attempt(name, engine.CallGenerate, `{"prompt":"{{item}}"}`, "")
			a.Line = &c.line
			if f := r.one(a).Failure; f == nil || f.Kind != run.KindCannotSend || f.Advice != engine.Never || !strings.Contains(f.Message, c.says) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if n := len(r.m.requests()); n > 0 {
			t.Errorf("%d calls were made", n)
		}
	})
}
