package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/run"
)

// A machine whose Ollama fails every call is left alone after a few, and only looked at now and then.
func TestAMachineThatFailsEveryCallIsLeftAlone(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items, retry: { attempts: 6 } });`)
	for kind, says := range map[string]string{"server_error": "small:8b is kept away from box-1", "ollama_unreachable": "every call is kept away from box-1"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFarm(2)
				f.answer = func(a Attempt) Result {
					if a.Node == "n1" {
						return fails(a, kind, OtherNode)
					}
					return value(a)
				}
				r := newRig(t, f, Options{})
				v := r.wait(r.submit(p, items(300)))
				if v.Status != run.Completed {
					t.Fatalf("%s %+v", v.Status, v.Failures)
				}
				there := 0
				for _, a := range f.sent() {
					if a.Node == "n1" {
						there++
					}
				}
				if there > 12 { // its four slots, what was on the way, and a look or two in 75 seconds
					t.Errorf("%d calls were sent to a machine that fails", there)
				}
				if got := incidents(r, IncidentOpened); len(got) == 0 || !strings.Contains(got[len(got)-1], says) {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

// It comes back by itself: one call is let through to see, and when that is well all are.
func TestAMachineThatIsWellAgainIsUsedAgain(t *testing.T) {
	p := program(t, `await batch({ model: "small:8b", prompt: "{{item}}", items: input.items, retry: { attempts: 20 } });`)
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		ill := time.Now().Add(2 * time.Minute)
		f.answer = func(a Attempt) Result {
			if time.Now().Before(ill) {
				return fails(a, "server_error", OtherNode)
			}
			return value(a)
		}
		r := newRig(t, f, Options{})
		v := r.wait(r.submit(p, items(40)))
		if v.Status != run.Completed {
			t.Fatalf("%s %+v", v.Status, v.Failures)
		}
		if after := v.Ended.Sub(ill); after > 3*time.Minute {
			t.Errorf("%s after it was well again", after)
		}
		if tries := int(v.Calls) - 40; tries > 15 {
			t.Errorf("%d calls while it was ill", tries)
		}
	})
}
