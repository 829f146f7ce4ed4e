package api_test

import (
	"strings"
	"testing"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// An answer to a suspended run is kept, and says that it changes nothing yet.
func TestAnAnswerSaysThatTheRunIsSuspended(t *testing.T) {
	r := newRig(t)
	out, err := r.script(asks, `{}`)
	if err != nil {
		t.Fatal(err)
	}
	id := out.GetRunId()
	r.eventually("both wait", func() bool {
		w, err := r.steer.ListWaits(t.Context(), &coordinatorv1.ListWaitsRequest{RunId: id})
		return err == nil && len(w.GetWaits()) == 2
	})
	if _, err := r.steer.SuspendRun(t.Context(), &coordinatorv1.SuspendRunRequest{RunId: id, By: "Ann"}); err != nil {
		t.Fatal(err)
	}
	got, failed := r.steer.AnswerWait(t.Context(), &coordinatorv1.AnswerWaitRequest{RunId: id, Step: "0", Outcome: "approved"})
	if failed != nil || len(got.GetNotes()) != 1 || !strings.Contains(got.GetNotes()[0], "loopkeeper resume "+id) {
		t.Errorf("%v, %v", got.GetNotes(), failed)
	}
	if _, err := r.steer.ResumeRun(t.Context(), &coordinatorv1.ResumeRunRequest{RunId: id}); err != nil {
		t.Fatal(err)
	}
	got, failed = r.steer.AnswerWait(t.Context(), &coordinatorv1.AnswerWaitRequest{RunId: id, AnswerJson: []byte(`"x"`)})
	if failed != nil || len(got.GetNotes()) != 0 {
		t.Errorf("%v, %v", got.GetNotes(), failed)
	}
}
