package api_test

import (
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// What an input hands in must be covered; what is only read with it must not.
func TestWhatIsHandedIn(t *testing.T) {
	r := newRig(t)
	a, _ := r.put("a.md", "A")
	b, _ := r.put("b.md", "B")
	rules, _ := r.put("rules.md", "R")
	lines, _ := r.put("all.jsonl", "1\n2\n\"three\"\n")
	ref := func(x *coordinatorv1.Ref) string {
		return `{"bytes":1,"name":"` + x.GetName() + `","ref":"` + x.GetSha256() + `"}`
	}
	both := "[" + ref(a) + "," + ref(b) + "]"
	for _, tt := range []struct {
		name, params, input string
		want                string // uncovered keys
	}{
		{"files of a list", `{files: t.files()}`, `{"files":` + both + `}`, "a.md b.md"},
		{"a file alone is read", `{file: t.file()}`, `{"file":` + ref(a) + `}`, ""},
		{"a context is read", `{context: t.files(), files: t.files()}`, `{"context":[` + ref(rules) + `],"files":[` + ref(a) + `]}`, "a.md"},
		{"so is what says so", `{files: t.files({covered: false})}`, `{"files":` + both + `}`, ""},
		{"keys name items", `{items: t.array(t.any()), keys: t.array(t.string())}`, `{"items":["x","y"],"keys":["one","two"]}`, ""},
		{"keys name items that may be files", `{items: t.array(t.anyOf(t.file(), t.any())), keys: t.array(t.string())}`, `{"items":["x",` + ref(a) + `],"keys":["one","two"]}`, "one two"},
		{"values without keys have no names", `{items: t.array(t.anyOf(t.file(), t.any()))}`, `{"items":["x",` + ref(a) + `]}`, "a.md"},
		{"lines", `{all: t.lines()}`, `{"all":{"lines":` + ref(lines) + `}}`, "all.jsonl:1 all.jsonl:2 all.jsonl:3"},
		{"nothing is declared", ``, `{"files":` + both + `}`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text := `import { t } from "loopkeeper";` + "\n"
			if tt.params != "" {
				text += "export const params = t.object(" + tt.params + ");\n"
			}
			out, err := r.script(text+"export default async function flow() { return 1; }", tt.input)
			if err != nil {
				t.Fatal(err)
			}
			end := r.end(out.GetRunId())
			if got := strings.Join(end.GetAcceptance().GetUncoveredKeys(), " "); got != tt.want {
				t.Errorf("not covered are %q, want %q", got, tt.want)
			}
			if want := map[bool]string{true: "completed", false: "incomplete"}[tt.want == ""]; end.GetState() != want {
				t.Errorf("the run is %s, want %s", end.GetState(), want)
			}
		})
	}
}

// A script of a user that is spawned must cover its files as one that is submitted must.
func TestWhatAChildIsHanded(t *testing.T) {
	r := newRig(t)
	a, _ := r.put("a.md", "A")
	drops := bundle(t, `import { t } from "loopkeeper";
export const params = t.object({ files: t.files() });
export default async function flow() { return 1; }`)
	if _, err := r.library.AddWorkflow(t.Context(), &coordinatorv1.AddWorkflowRequest{Name: "drops", Bundle: drops}); err != nil {
		t.Fatal(err)
	}
	out, err := r.script(`import { spawn } from "loopkeeper";
export default async function flow(input) { return (await spawn({ workflow: "drops", input })).state; }`,
		`{"files":[{"bytes":1,"name":"a.md","ref":"`+a.GetSha256()+`"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	end := r.end(out.GetRunId())
	if end.GetState() != "incomplete" || len(end.GetChildren()) != 1 {
		t.Fatalf("the parent is %s with children %v: %s", end.GetState(), end.GetChildren(), end.GetError())
	}
	child := r.end(end.GetChildren()[0])
	if got := child.GetAcceptance().GetUncoveredKeys(); child.GetState() != "incomplete" || len(got) != 1 || got[0] != "a.md" {
		t.Errorf("the child is %s, not covered are %q", child.GetState(), got)
	}
}

// A run's own budgets go before its workflow's, those before the default's; 0 is none; and each says whose it is.
func TestWhoSetALimit(t *testing.T) {
	r := newRigWith(t, withBudgets)
	flow := bundle(t, `export default async function flow() { return 1; }`)
	ask := func(limits map[string]int64) map[string]string {
		t.Helper()
		out, err := r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_Bundle{Bundle: flow}, Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, l := range r.end(out.GetRunId()).GetLimits() {
			got[l.GetName()] = l.GetSetBy()
		}
		return got
	}
	if got := ask(nil); got["calls"] != "workflow" || got["tokens"] != "default" || got["spawn_depth"] != "" {
		t.Errorf("nothing is said: %v", got)
	}
	if got := ask(map[string]int64{"calls": 9, "tokens": 0, "spawn_depth": 2}); got["calls"] != "run" || got["tokens"] != "" || got["spawn_depth"] != "run" {
		t.Errorf("something is said: %v", got)
	}
	for limits, says := range map[string]string{"colour": `there is no limit "colour"`, "calls": "makes no sense", "active_seconds": "makes no sense"} {
		_, err := r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_Bundle{Bundle: flow},
			Limits: map[string]int64{limits: -1}})
		refused(t, err, apierr.InvalidArgument, says)
	}
}
