package api_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/test/bufconn"

	"github.com/loopkeeper/loopkeeper/coordinator"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

const sayIt = `import { generate, t } from "loopkeeper";
export const params = t.object({ item: t.file() });
export default async function say(input: any) { return await generate({ model: "small:1b", prompt: "Say {{item}}", item: input.item }); }`

// recordRig is a coordinator with a machine, and the client of its records.
func recordRig(t *testing.T, m *machine) (*rig, coordinatorv1.RecordServiceClient) {
	t.Helper()
	var at *bufconn.Listener
	r := newRigWith(t, func(o *coordinator.Options) { at = o.Listener.(*bufconn.Listener) }, m)
	conn, err := dial(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return r, coordinatorv1.NewRecordServiceClient(conn)
}

func said(err error) *apierr.Error { return apierr.As(apierr.FromStatus(err)) }

// A run with bodies of many chunks is the same elsewhere.
func TestARunMovesWholeToAnotherLedger(t *testing.T) {
	here, from := recordRig(t, newMachine("n1"))
	there, to := recordRig(t, newMachine("n2"))
	file, err := here.put("big.txt", strings.Repeat("A pump moves water.\n", 10_000), strings.Repeat("A gauge shows pressure.\n", 20_000))
	if err != nil {
		t.Fatal(err)
	}
	out, err := here.script(sayIt, toJSON(t, map[string]any{"item": map[string]any{"ref": file.GetSha256(), "name": "big.txt", "bytes": file.GetBytes()}}))
	if err != nil {
		t.Fatal(err)
	}
	id := out.GetRunId()
	if end := here.end(id); end.GetState() != "completed" {
		t.Fatalf("it ended %s: %s", end.GetState(), end.GetError())
	}
	export, failed := from.ExportRun(t.Context(), &coordinatorv1.ExportRunRequest{RunId: id})
	if failed != nil {
		t.Fatal(failed)
	}
	var packed bytes.Buffer
	for {
		m, err := export.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		packed.Write(m.GetChunk())
	}
	in, err := imported(t, to, packed.Bytes(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := here.store.Head(t.Context(), id)
	b, errB := there.store.Head(t.Context(), id)
	if errA != nil || errB != nil || a != b || in.GetEvents() != a.Seq {
		t.Errorf("%v and %v, %v, %v; %d events came", a, b, errA, errB, in.GetEvents())
	}
	if replay, failed := to.ReplayRun(t.Context(), &coordinatorv1.ReplayRunRequest{RunId: id}); failed != nil || replay.GetDiverged() != "" || replay.GetSteps() != 2 {
		t.Errorf("its replay is %v, %v", replay, failed)
	}
	_, err = imported(t, to, packed.Bytes()[:packed.Len()/2], 1000)
	refused(t, err, apierr.InvalidArgument)
	_, err = imported(t, to, nil, 1)
	refused(t, err, apierr.InvalidArgument)
}

// imported sends an export in pieces of some size.
func imported(t *testing.T, c coordinatorv1.RecordServiceClient, packed []byte, size int) (*coordinatorv1.ImportRunResponse, *apierr.Error) {
	t.Helper()
	stream, err := c.ImportRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for len(packed) > 0 {
		n := min(size, len(packed))
		if stream.Send(&coordinatorv1.ImportRunRequest{Chunk: packed[:n]}) != nil {
			break // the reason comes with the answer
		}
		packed = packed[n:]
	}
	out, err := stream.CloseAndRecv()
	return out, said(err)
}

// A question that nobody waits for any more costs nothing further: its run is cancelled.
func TestAQuestionThatIsGivenUpIsCancelled(t *testing.T) {
	m := newMachine("n1")
	m.gate = make(chan struct{}, 1) // opens once for each value
	r, c := recordRig(t, m)
	file, failed := r.put("a.txt", "A pump moves water.")
	if failed != nil {
		t.Fatal(failed)
	}
	m.gate <- struct{}{}
	out, failed := r.script(sayIt, toJSON(t, map[string]any{"item": map[string]any{"ref": file.GetSha256(), "name": "a.txt", "bytes": file.GetBytes()}}))
	if failed != nil {
		t.Fatal(failed)
	}
	r.end(out.GetRunId())
	ctx, giveUp := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.Why(ctx, &coordinatorv1.WhyRequest{RunId: out.GetRunId(), Subject: "0", Question: "Why?"})
		done <- err
	}()
	asked := func(state string) bool {
		rows, err := r.store.Runs(t.Context(), ledger.RunFilter{States: []string{state}})
		return err == nil && len(rows) == 1 && rows[0].Workflow == "why"
	}
	r.eventually("the question is asked", func() bool { return asked("running") })
	giveUp()
	if err := <-done; said(err).Code != apierr.Cancelled {
		t.Errorf("it ended with %v", err)
	}
	r.eventually("its run is cancelled", func() bool { return asked("cancelled") })
}

func TestRecordsRefuseWhatMakesNoSense(t *testing.T) {
	_, c := recordRig(t, newMachine("n1"))
	_, err := c.Why(t.Context(), &coordinatorv1.WhyRequest{RunId: "zzzz"})
	refused(t, said(err), apierr.NotFound, "zzzz")
	_, err = c.Audit(t.Context(), &coordinatorv1.AuditRequest{})
	refused(t, said(err), apierr.InvalidArgument)
	_, err = c.ReplayRun(t.Context(), &coordinatorv1.ReplayRunRequest{RunId: "zzzz"})
	refused(t, said(err), apierr.NotFound, "zzzz")
	_, err = c.BackUp(t.Context(), &coordinatorv1.BackUpRequest{Path: "copy"})
	refused(t, said(err), apierr.InvalidArgument, `"copy" is no absolute path`)
	_, err = c.BackUp(t.Context(), &coordinatorv1.BackUpRequest{Path: t.TempDir()})
	refused(t, said(err), apierr.Conflict, "exists already")
	_, err = c.Prune(t.Context(), &coordinatorv1.PruneRequest{OlderSeconds: -1})
	refused(t, said(err), apierr.InvalidArgument, "makes no sense")
	_, err = c.Prune(t.Context(), &coordinatorv1.PruneRequest{Kinds: []string{"script"}})
	refused(t, said(err), apierr.InvalidArgument, `no bodies are called "script"`)

	copied := filepath.Join(t.TempDir(), "copy")
	out, err := c.BackUp(t.Context(), &coordinatorv1.BackUpRequest{Path: copied})
	if err != nil || out.GetBytes() == 0 {
		t.Fatalf("%v, %v", out, err)
	}
	again, err := ledger.Open(t.Context(), ledger.Options{Dir: copied})
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
}
