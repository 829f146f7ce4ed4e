package schedule

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

func TestSpecsAreRefusedByField(t *testing.T) {
	good := func() Spec { return Spec{Name: "nightly", Workflow: "map", Cron: "30 2 * * *"} }
	watch := func() Spec { return Spec{Name: "inbox", Workflow: "map", Watch: &Watch{Folder: "/inbox"}} }
	for want, s := range map[string]Spec{
		"name":                             func() Spec { s := good(); s.Name = "Nightly run"; return s }(),
		"workflow":                         func() Spec { s := good(); s.Workflow = ""; return s }(),
		"input":                            func() Spec { s := good(); s.Input = json.RawMessage("{"); return s }(),
		"--cron, --every":                  func() Spec { s := good(); s.EverySeconds = 60; return s }(),
		"3 are given":                      func() Spec { s := watch(); s.Cron, s.EverySeconds = "@daily", 60; return s }(),
		"0 are given":                      func() Spec { s := good(); s.Cron = ""; return s }(),
		"--every: -5":                      func() Spec { s := good(); s.Cron, s.EverySeconds = "", -5; return s }(),
		"minute":                           func() Spec { s := good(); s.Cron = "61 * * * *"; return s }(),
		"Europe/Atlantis":                  func() Spec { s := good(); s.Zone = "Europe/Atlantis"; return s }(),
		"zone: Local":                      func() Spec { s := good(); s.Zone = "Local"; return s }(),
		"--zone: only the times of --cron": func() Spec { s := watch(); s.Zone = "UTC"; return s }(),
		"--watch: ":                        func() Spec { s := watch(); s.Watch.Folder = ""; return s }(),
		"--pattern":                        func() Spec { s := watch(); s.Watch.Pattern = "[a"; return s }(),
		"--settle":                         func() Spec { s := watch(); s.Watch.SettleSeconds = -1; return s }(),
		"overlap: skip would":              func() Spec { s := watch(); s.Overlap = Skip; return s }(),
		"overlap: cancel would":            func() Spec { s := watch(); s.Overlap = Cancel; return s }(),
		"overlap: \"kill\"":                func() Spec { s := good(); s.Overlap = "kill"; return s }(),
		"--catch-up":                       func() Spec { s := good(); s.CatchUp.Policy = "some"; return s }(),
		"--catch-up: 1001":                 func() Spec { s := good(); s.CatchUp = CatchUp{All, 1001}; return s }(),
		"only the policy all":              func() Spec { s := good(); s.CatchUp = CatchUp{Last, 2}; return s }(),
		"--limit":                          func() Spec { s := good(); s.MaxFirings = -1; return s }(),
		"reach":                            func() Spec { s := good(); s.Reach = "rule"; return s }(),
		"goal":                             func() Spec { s := good(); s.Goal = &Goal{Text: "be useful"}; return s }(),
		"level: L3 is not":                 func() Spec { s := good(); s.Level = L3; return s }(),
		"\"mood\" is not measured":         func() Spec { s := good(); s.Rule = []Condition{{"mood", ">", 1}}; return s }(),
		"files is measured only":           func() Spec { s := good(); s.Rule = []Condition{{"files", ">", 1}}; return s }(),
		"--rule, --gap: \"~\"":             func() Spec { s := watch(); s.Rule = []Condition{{"files", "~", 1}}; return s }(),
	} {
		_, err := Complete(s)
		if apierr.CodeOf(err) != apierr.InvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestDefaultsAreSaid(t *testing.T) {
	for want, s := range map[string]Spec{
		`{"name":"test","cron":"@daily","zone":"UTC","workflow":"map","overlap":"skip","catch_up":{"policy":"last"},"level":"L1","reach":"inform"}`: {Cron: "@daily"},
		`{"name":"test","watch":{"folder":"/inbox","settle_seconds":10,"poll_seconds":5,"max_bytes":1073741824},` +
			`"workflow":"map","overlap":"queue","catch_up":{"policy":"all","most":10000},"level":"L2","reach":"inform"}`: {Watch: &Watch{Folder: "/inbox"}},
	} {
		done := complete(t, s)
		if got, _ := json.Marshal(done); string(got) != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
		if again := complete(t, done); !reflect.DeepEqual(done, again) {
			t.Errorf("a second time it becomes %+v", again)
		}
		if done.Level.Means() == "" || done.Reach.Means() == "" {
			t.Error("nothing is said of who defined the problem and how far it may go")
		}
	}
}
