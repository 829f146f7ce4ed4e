package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// mapOf starts a map over texts and returns its id.
func (r *rig) mapOf(texts ...string) string {
	r.t.Helper()
	out, err := r.submit("map", toJSON(r.t, map[string]any{"model": "small:1b", "prompt": "Say {{item}}", "items": texts}), "small:1b")
	if err != nil {
		r.t.Fatal(err)
	}
	return out.GetRunId()
}

func TestRunFromSubmitToResult(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	id := r.mapOf("one", "two", "three")
	v := r.end(id)
	if v.GetState() != "completed" || v.GetItems().GetSucceeded() != 3 || v.GetEnded() == nil || !v.GetSimulated() {
		t.Fatalf("the run is %v", v)
	}
	if n := v.GetNodes(); len(n) != 1 || n[0].GetName() != "the attic" || n[0].GetItems() != 3 || n[0].GetOutputTokens() != 6 {
		t.Errorf("the shares are %v", n)
	}
	items, err := r.client.GetItems(t.Context(), &coordinatorv1.GetItemsRequest{RunId: id, From: 1})
	if err != nil || items.GetTotal() != 3 || items.GetFinalPrefix() != 3 || len(items.GetItems()) != 2 || items.GetItems()[0].GetText() != "two" {
		t.Errorf("the items are %v, %v", items, err)
	}
	result, err := r.client.GetResult(t.Context(), &coordinatorv1.GetResultRequest{RunId: id[:2]}) // a prefix will do
	if err != nil || len(result.GetOutputs()) != 1 || result.GetOutputs()[0].GetName() != "result" || result.GetRun().GetId() != id ||
		!slices.Equal(result.GetOutputs()[0].GetSources(), []string{"0"}) {
		t.Errorf("the result is %v, %v", result, err)
	}
	list, err := r.client.ListRuns(t.Context(), &coordinatorv1.ListRunsRequest{States: []string{"completed"}, Limit: 1})
	if err != nil || len(list.GetRuns()) != 1 || list.GetRuns()[0].GetItems().GetSucceeded() != 3 {
		t.Errorf("the list is %v, %v", list, err)
	}
	_, err = r.client.CancelRun(t.Context(), &coordinatorv1.CancelRunRequest{RunId: id})
	refused(t, apierr.As(apierr.FromStatus(err)), apierr.Conflict, "already ended")
}

func TestUnknownAndAmbiguousRuns(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	ids := map[byte]string{} // by first character, until two begin alike
	var alike string
	for i := 0; alike == "" && i < 40; i++ { // of 30 first characters, so that two must
		id := r.mapOf("x")
		r.end(id)
		if ids[id[0]] != "" {
			alike = id[:1]
		}
		ids[id[0]] = id
	}
	calls := map[string]func(ctx context.Context, id string) error{
		"get": func(ctx context.Context, id string) error {
			_, err := r.client.GetRun(ctx, &coordinatorv1.GetRunRequest{RunId: id})
			return err
		},
		"cancel": func(ctx context.Context, id string) error {
			_, err := r.client.CancelRun(ctx, &coordinatorv1.CancelRunRequest{RunId: id})
			return err
		},
		"result": func(ctx context.Context, id string) error {
			_, err := r.client.GetResult(ctx, &coordinatorv1.GetResultRequest{RunId: id})
			return err
		},
		"items": func(ctx context.Context, id string) error {
			_, err := r.client.GetItems(ctx, &coordinatorv1.GetItemsRequest{RunId: id})
			return err
		},
		"explain": func(ctx context.Context, id string) error {
			_, err := r.client.Explain(ctx, &coordinatorv1.ExplainRequest{Subject: &coordinatorv1.ExplainRequest_RunId{RunId: id}})
			return err
		},
		"watch": func(ctx context.Context, id string) error {
			s, err := r.client.WatchRun(ctx, &coordinatorv1.WatchRunRequest{RunId: id})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
		"trace": func(ctx context.Context, id string) error {
			s, err := r.client.GetTrace(ctx, &coordinatorv1.GetTraceRequest{RunId: id, Follow: true})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			refused(t, apierr.As(apierr.FromStatus(call(t.Context(), "0none"))), apierr.NotFound, "0none")
			refused(t, apierr.As(apierr.FromStatus(call(t.Context(), ""))), apierr.InvalidArgument, "no run is named")
			refused(t, apierr.As(apierr.FromStatus(call(t.Context(), alike))), apierr.InvalidArgument, "runs begin with "+alike)
		})
	}
}

func TestWrongQuestionsAboutARun(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	id := r.mapOf("x")
	r.end(id)
	for _, step := range []string{"first", "-1", "1.5"} {
		_, err := r.client.GetItems(t.Context(), &coordinatorv1.GetItemsRequest{RunId: id, Step: step})
		refused(t, apierr.As(apierr.FromStatus(err)), apierr.InvalidArgument, step)
	}
	_, err := r.client.GetItems(t.Context(), &coordinatorv1.GetItemsRequest{RunId: id, Step: "99"})
	refused(t, apierr.As(apierr.FromStatus(err)), apierr.NotFound, "no such step")
	_, err = r.client.ListRuns(t.Context(), &coordinatorv1.ListRunsRequest{States: []string{"finished"}})
	refused(t, apierr.As(apierr.FromStatus(err)), apierr.InvalidArgument, "finished")
	if page, err := r.client.GetItems(t.Context(), &coordinatorv1.GetItemsRequest{RunId: id, From: -5, Limit: -5}); err != nil || len(page.GetItems()) != 1 {
		t.Errorf("negative numbers give %v, %v", page, err)
	}
}

// A page is one message, so that it is cut where items are large; whoever asks on gets all of them.
func TestLargeItemsComeInSmallPages(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	const n = 8
	var texts []string
	var items []any
	for i := range n {
		texts = append(texts, strings.Repeat(fmt.Sprint(i), 600_000))
		ref, err := r.put(fmt.Sprintf("%d.txt", i), texts[i])
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, map[string]any{"ref": ref.GetSha256(), "name": ref.GetName(), "bytes": ref.GetBytes()})
	}
	sub, serr := r.submit("map", toJSON(t, map[string]any{"model": "small:1b", "prompt": "Say {{item}}", "items": items}), "small:1b")
	if serr != nil {
		t.Fatal(serr)
	}
	id := sub.GetRunId()
	r.end(id)
	var got []string
	pages := 0
	for len(got) < n {
		page, err := r.client.GetItems(t.Context(), &coordinatorv1.GetItemsRequest{RunId: id, From: int32(len(got))})
		if err != nil || len(page.GetItems()) == 0 {
			t.Fatalf("after %d items: %v", len(got), err)
		}
		pages++
		for _, i := range page.GetItems() {
			got = append(got, i.GetText())
		}
	}
	if pages < 3 || !slices.Equal(got, texts) {
		t.Errorf("%d pages with %d items", pages, len(got))
	}
}

// event is one line of a trace.
func events(t *testing.T, s coordinatorv1.CoordinatorService_GetTraceClient) (kinds []string) {
	t.Helper()
	for next := int64(0); ; {
		e, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return kinds
		}
		if err != nil {
			t.Fatal(err)
		}
		if next != 0 && e.GetSeq() != next {
			t.Errorf("event %d follows event %d", e.GetSeq(), next-1)
		}
		next = e.GetSeq() + 1
		if e.GetTime() == nil || len(e.GetPayloadJson()) == 0 {
			t.Errorf("the event %v lacks something", e)
		}
		kinds = append(kinds, e.GetKind())
	}
}

func TestTraceFollowsARunToItsEnd(t *testing.T) {
	m := newMachine("attic")
	m.gate = make(chan struct{})
	r := newRig(t, m)
	id := r.mapOf("one", "two", "three")
	s, err := r.client.GetTrace(t.Context(), &coordinatorv1.GetTraceRequest{RunId: id, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	if first, err := s.Recv(); err != nil || first.GetSeq() != 1 || first.GetKind() != "run.created" {
		t.Fatalf("the first event is %v, %v", first, err)
	}
	close(m.gate)
	followed := append([]string{"run.created"}, events(t, s)...)
	if last := followed[len(followed)-1]; last != "run.ended" {
		t.Errorf("the last event is %s", last)
	}
	s, err = r.client.GetTrace(t.Context(), &coordinatorv1.GetTraceRequest{RunId: id})
	if err != nil {
		t.Fatal(err)
	}
	if whole := events(t, s); !slices.Equal(whole, followed) {
		t.Errorf("followed %v\nread %v", followed, whole)
	}
	s, err = r.client.GetTrace(t.Context(), &coordinatorv1.GetTraceRequest{RunId: id, AfterSeq: 2})
	if err != nil {
		t.Fatal(err)
	}
	if rest := events(t, s); !slices.Equal(rest, followed[2:]) {
		t.Errorf("after the second event come %v", rest)
	}
}

// A watch that the coordinator's stop cuts off must not look like the end of the run.
func TestStopIsNotTheEndOfARun(t *testing.T) {
	m := newMachine("attic")
	m.gate = make(chan struct{})
	r := newRig(t, m)
	id := r.mapOf("one")
	watch, err := r.client.WatchRun(t.Context(), &coordinatorv1.WatchRunRequest{RunId: id})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	trace, err := r.client.GetTrace(t.Context(), &coordinatorv1.GetTraceRequest{RunId: id, Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	stop := r.c
	r.c = nil
	stop.Stop()
	for err = nil; err == nil; _, err = watch.Recv() {
	}
	refused(t, apierr.As(apierr.FromStatus(err)), apierr.Unavailable)
	for err = nil; err == nil; _, err = trace.Recv() {
	}
	refused(t, apierr.As(apierr.FromStatus(err)), apierr.Unavailable)
}

func TestCancel(t *testing.T) {
	m := newMachine("attic")
	m.gate = make(chan struct{})
	r := newRig(t, m)
	id := r.mapOf("one", "two", "three")
	r.eventually("two calls run", func() bool {
		v, err := r.client.GetRun(t.Context(), &coordinatorv1.GetRunRequest{RunId: id})
		return err == nil && v.GetRun().GetItems().GetRunning() == 2
	})
	v, err := r.client.CancelRun(t.Context(), &coordinatorv1.CancelRunRequest{RunId: id, Reason: "enough"})
	if err != nil || v.GetRun().GetState() != "cancelled" {
		t.Fatalf("cancel says %v, %v", v, err)
	}
	if v := r.end(id); v.GetState() != "cancelled" || v.GetItems().GetCancelled() != 3 {
		t.Errorf("the run is %v", v)
	}
}

func TestACancelKeepsItsReason(t *testing.T) {
	r := newRig(t)
	out, err := r.submit("map", oneItem)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.client.CancelRun(t.Context(), &coordinatorv1.CancelRunRequest{RunId: out.GetRunId(), Reason: "wrong prompt"}); err != nil {
		t.Fatal(err)
	}
	v, gerr := r.client.GetRun(t.Context(), &coordinatorv1.GetRunRequest{RunId: out.GetRunId()})
	if gerr != nil || v.GetRun().GetCancelReason() != "wrong prompt" {
		t.Errorf("the run says %q, %v", v.GetRun().GetCancelReason(), gerr)
	}
	list, gerr := r.client.ListRuns(t.Context(), &coordinatorv1.ListRunsRequest{})
	if gerr != nil || list.GetRuns()[0].GetCancelReason() != "wrong prompt" {
		t.Errorf("the list says %v, %v", list.GetRuns(), gerr)
	}
}

func TestExplainSaysWhatIsNoQuestion(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	explain := func(q *coordinatorv1.ExplainRequest) (*coordinatorv1.Explanation, error) {
		e, err := r.client.Explain(t.Context(), q)
		if err != nil {
			return nil, err
		}
		return e.GetExplanations()[0], nil
	}
	_, err := explain(&coordinatorv1.ExplainRequest{Subject: &coordinatorv1.ExplainRequest_Model{Model: "zzzz"}})
	refused(t, apierr.As(apierr.FromStatus(err)), apierr.NotFound, "zzzz")
	e, err := explain(&coordinatorv1.ExplainRequest{Subject: &coordinatorv1.ExplainRequest_Model{Model: "small:1b"}, Context: 1 << 20})
	if err != nil || !strings.Contains(e.GetNote(), "8192 at most") {
		t.Errorf("a context beyond the model's own: %v, %v", e, err)
	}
	out, serr := r.submit("map", `{"model":"small:1b","prompt":"Say {{item}}","items":["x","y"]}`)
	if serr != nil {
		t.Fatal(serr)
	}
	r.eventually("the run ends", func() bool {
		v, err := r.client.GetRun(t.Context(), &coordinatorv1.GetRunRequest{RunId: out.GetRunId()})
		return err == nil && v.GetRun().GetState() == "completed"
	})
	e, err = explain(&coordinatorv1.ExplainRequest{Subject: &coordinatorv1.ExplainRequest_RunId{RunId: out.GetRunId()}})
	if err != nil || !strings.Contains(e.GetSummary(), "has ended (completed)") || !strings.Contains(e.GetSummary(), "2 on the attic") {
		t.Errorf("of a run that has ended: %v, %v", e, err)
	}
}
