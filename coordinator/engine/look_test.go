package engine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// slowEyes are tools that take their time to look at what they did.
type slowEyes struct {
	*workbench
	looks time.Duration
}

func (s slowEyes) Check(ctx context.Context, c ToolCall) (ToolChecked, error) {
	select {
	case <-time.After(s.looks):
		return s.workbench.Check(ctx, c)
	case <-ctx.Done():
		return ToolChecked{}, ctx.Err()
	}
}

// A person is asked of an interrupted write only after its tool has looked, is told what it saw, and cannot answer before: the answer would win
// over what the tool is about to see.
func TestNobodyIsAskedWhileTheToolLooks(t *testing.T) {
	p := flow(t, `return await tool("mail", { text: "letter" });`)
	for name, tt := range map[string]struct {
		looks       time.Duration
		acted, held bool // held: nobody can tell what it did
		asked       string
	}{
		"it sees that it happened": {looks: 30 * time.Second, acted: true},
		"it sees nothing":          {looks: 30 * time.Second, acted: true, held: true, asked: "mail looked: nobody can tell"},
		"it does not end":          {looks: time.Hour, acted: true, held: true, asked: "mail looked: it could not: context deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench()
				b.takes = func(ToolCall) time.Duration { return time.Minute }
				b.blind, b.stubborn = tt.held, tt.acted
				r := newRig(t, newFarm(1), Options{Tools: slowEyes{b, tt.looks}})
				id := r.submit(p, nil)
				time.Sleep(30 * time.Second)
				r.e.Stop()
				b.stubborn = false
				r.start()
				time.Sleep(20 * time.Second)
				v := r.view(id)
				if w := r.waits(id); len(w) != 0 || v.Waits != 0 || v.Steps[0].WaitingFor != waitLook {
					t.Fatalf("while it looks a person is asked %+v; the view says %d, %s", w, v.Waits, v.Steps[0].WaitingFor)
				}
				list, err := r.e.Runs(t.Context(), Filter{})
				if err != nil || list[0].Waits != 0 {
					t.Errorf("the list says that %d wait, %v", list[0].Waits, err)
				}
				if _, err := r.e.Settle(t.Context(), id, 0, 0, Answer{Outcome: NotHappened}); apierr.CodeOf(err) != apierr.Conflict {
					t.Errorf("an answer while it looks: %v", err)
				}
				if tt.asked == "" {
					if v := r.wait(id); v.Status != run.Completed || r.output(id, "result") != `{"did":"before"}` {
						t.Errorf("%s: %s", v.Status, r.output(id, "result"))
					}
					return
				}
				r.until("somebody is asked", func() bool { return len(r.waits(id)) == 1 })
				if w := r.waits(id)[0]; !strings.Contains(w.Text, tt.asked) {
					t.Errorf("the person is told %q", w.Text)
				}
				if v := r.view(id); v.Waits != 1 || v.Steps[0].WaitingFor != string(run.WaitHuman) {
					t.Errorf("the view says %d, %s", v.Waits, v.Steps[0].WaitingFor)
				}
				if _, err := r.e.Settle(t.Context(), id, 0, 0, Answer{Outcome: Happened, By: "ada"}); err != nil {
					t.Fatal(err)
				}
				if v := r.wait(id); v.Status != run.Completed || b.did()["letter"] != 1 {
					t.Errorf("%s, done %v", v.Status, b.did())
				}
			})
		})
	}
}
