package engine

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// What a completed run is worth can be seen in its row: failures that were handled count apart, and so do keys of which only the script says
// that they are covered.
func TestARowSaysWhatCompletedRestsOn(t *testing.T) {
	p := books(t, `
  const r = await batch({ items: ["good", "bad"], model: "small:8b", prompt: "{{item}}", schema: Answer, retry: { attempts: 1 } });
  for (const f of r.items.filter((i: any) => i.status === "failed")) waive(f, "a draft");
  expect(["a", "b"]); cover(["a", "b"]);
  return 1;`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.answer = func(a Attempt) Result {
			if a.Item == 1 {
				return Result{Failure: &Failure{Kind: "schema_violation", Message: "no", Advice: run.Never}}
			}
			return value(a)
		}
		r := newRig(t, f, Options{})
		id := r.submit(p, nil)
		v := r.wait(id)
		list, err := r.e.Runs(t.Context(), Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if v.Status != run.Completed || v.Handled != 1 || v.ByCode != 2 || list[0].Handled != 1 || list[0].ByCode != 2 {
			t.Errorf("%s (%s), handled %d and %d, by code %d and %d", v.Status, v.Error, v.Handled, list[0].Handled, v.ByCode, list[0].ByCode)
		}
		if len(v.Failures) != 1 || v.Failures[0].Handled != 1 {
			t.Errorf("failures %+v", v.Failures)
		}
	})
}

// A run that is suspended says so when it is to be suspended again, and what a step waits for is said in the words of its kind.
func TestSuspendedTwice(t *testing.T) {
	p := flow(t, `return await approve({ title: "go?" });`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		id := r.submit(p, nil)
		r.until("it asks", func() bool { return len(r.waits(id)) == 1 })
		if v := r.view(id); len(v.Waiting) != 1 || v.Waiting[0].Why != "a person has to approve or reject" {
			t.Errorf("waiting %+v", v.Waiting)
		}
		if _, err := r.e.ResumeRun(t.Context(), id, "ada"); err == nil || !strings.Contains(err.Error(), "is not suspended") {
			t.Errorf("resumed before: %v", err)
		}
		if _, err := r.e.SuspendRun(t.Context(), id, "ada", "lunch"); err != nil {
			t.Fatal(err)
		}
		_, err := r.e.SuspendRun(t.Context(), id, "ada", "lunch")
		if err == nil || !strings.Contains(err.Error(), "is suspended already") || !slices.Contains(apierr.As(err).Next, "loopkeeper resume "+id) {
			t.Errorf("suspended twice: %v, next %q", err, apierr.As(err).Next)
		}
		if _, err := r.e.Settle(t.Context(), id, 0, 0, Answer{Outcome: run.Approved}); err != nil {
			t.Fatal(err)
		}
		if v := r.view(id); v.Status != run.Suspended {
			t.Errorf("an answer lets it go on: %s", v.Status)
		}
		if _, err := r.e.ResumeRun(t.Context(), id, "ada"); err != nil {
			t.Fatal(err)
		}
		if v := r.wait(id); v.Status != run.Completed {
			t.Errorf("%s", v.Status)
		}
	})
}

// books is a script that keeps its books by hand.
func books(t *testing.T, body string) script.Program {
	t.Helper()
	p, err := script.BundleText("flow.ts", `import { batch, cover, expect, generate, t, until, waive } from "loopkeeper";
const Answer = t.object({ of: t.string() });
export default async function flow(input: any) {`+body+`}`)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
