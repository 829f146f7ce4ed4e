package api_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
	workerv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/worker/v1"
)

const oneItem = `{"model":"small:1b","prompt":"Say {{item}}","items":["x"]}`

func TestInputIsCheckedAgainstTheParameters(t *testing.T) {
	r := newRig(t)
	absent := strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		input string
		code  apierr.Code
		says  []string
	}{
		"not JSON":           {`{"model":`, apierr.InvalidArgument, []string{"not JSON"}},
		"missing":            {`{"model":"m","items":["x"]}`, apierr.InvalidArgument, []string{"/: ", "prompt"}},
		"unknown":            {`{"model":"m","prompt":"p","items":["x"],"shema":{}}`, apierr.InvalidArgument, []string{"/: ", "shema"}},
		"wrong type":         {`{"model":7,"prompt":"p","items":["x"]}`, apierr.InvalidArgument, []string{"/model: "}},
		"none":               {`{"model":"m","prompt":"p","items":[]}`, apierr.InvalidArgument, []string{"/items: "}},
		"deep":               {`{"model":"m","prompt":"p","items":["x"],"retry":{"attempts":0}}`, apierr.InvalidArgument, []string{"/retry/attempts: "}},
		"two at once":        {`{"model":7,"prompt":8,"items":["x"]}`, apierr.InvalidArgument, []string{"/model: ", "/prompt: "}},
		"no schema":          {`{"model":"m","prompt":"p","items":["x"],"schema":{"type":"strin"}}`, apierr.InvalidArgument, []string{"/schema: schema at /type: ", "use object, array"}},
		"schema from afar":   {`{"model":"m","prompt":"p","items":["x"],"schema":{"$ref":"https://example.com/s.json"}}`, apierr.InvalidArgument, []string{"/schema: schema at /$ref: ", "outside"}},
		"schema from a file": {`{"model":"m","prompt":"p","items":["x"],"schema":{"$ref":"file:///etc/passwd"}}`, apierr.InvalidArgument, []string{"/schema: schema at /$ref: ", "outside"}},
		"schema of nothing": {`{"model":"m","prompt":"p","items":["x"],"schema":{"properties":{"age":{"minimum":10,"maximum":2}}}}`, apierr.InvalidArgument,
			[]string{"/schema: schema at /properties/age/minimum: minimum 10 is above maximum 2; lower minimum or raise maximum"}},
		"not a reference": {`{"model":"m","prompt":"p","items":["x"],"context":[{"ref":"abc","name":"a.txt"}]}`, apierr.InvalidArgument, []string{"/context/0: ", "SHA-256"}},
		"not uploaded": {`{"model":"m","prompt":"p","items":["x",{"ref":"` + absent + `","name":"a.txt"}]}`, apierr.MissingArtifact,
			[]string{"/items/1 a.txt", absent[:12]}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.submit("map", c.input)
			refused(t, err, c.code, c.says...)
		})
	}
	_, err := r.submit("map", `{"model":"m","prompt":"p","items":[{"ref":"`+absent+`"},{"ref":"`+strings.Repeat("cd", 32)+`"}]}`)
	if err == nil || len(err.Details) != 2 || err.Details[0] != absent {
		t.Errorf("the missing hashes are not told: %+v", err)
	}
	runs, lerr := r.client.ListRuns(t.Context(), &coordinatorv1.ListRunsRequest{})
	if lerr != nil || len(runs.GetRuns()) != 0 {
		t.Errorf("what was refused has left runs: %v %v", runs.GetRuns(), lerr)
	}
}

// A text that no call can carry is refused before the run, but for a script, which may read and split it.
func TestATextThatNoCallCarries(t *testing.T) {
	r := newRig(t)
	ref, err := r.put("big.txt", slices.Repeat([]string{strings.Repeat("x", 1<<20)}, 17)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, bytes := range []string{"", fmt.Sprintf(`,"bytes":%d`, ref.GetBytes())} {
		item := `{"ref":"` + ref.GetSha256() + `","name":"big.txt"` + bytes + `}`
		_, err = r.submit("map", `{"model":"m","prompt":"p","items":[`+item+`]}`)
		refused(t, err, apierr.InvalidArgument, "/items/0 big.txt has 17825792 bytes, a call carries at most 16777216 (16 MiB)")
		if _, err := r.script(`export default async function flow(input: any) {}`, `{"file":`+item+`}`); err != nil {
			t.Errorf("a script: %v", err)
		}
	}
}

// A pointer is one of RFC 6901, whatever a key looks like.
func TestPlacesAreJSONPointers(t *testing.T) {
	r := newRig(t)
	_, err := r.script(`import { t } from "loopkeeper";
export const params = t.object({ "a/b~c": t.array(t.object({ n: t.integer() })) });
export default async function flow() {}`, `{"a/b~c":[{"n":1},{"n":"two"}]}`)
	refused(t, err, apierr.InvalidArgument, "/a~1b~0c/1/n: ")
}

func TestManyFaultsAreCut(t *testing.T) {
	r := newRig(t)
	_, err := r.script(`import { t } from "loopkeeper";
export const params = t.array(t.integer());
export default async function flow() {}`, `["a","b","c","d","e","f","g"]`)
	refused(t, err, apierr.InvalidArgument, "/0: ", "/4: ", "and 2 more")
}

func TestWorkflowThatDoesNotLoad(t *testing.T) {
	r := newRig(t)
	_, err := r.submit("mop", `{}`)
	refused(t, err, apierr.NotFound, `"mop"`, "map, map-reduce")
	_, err = r.ask(&coordinatorv1.SubmitRequest{})
	refused(t, err, apierr.NotFound, "map, map-reduce")
	_, err = r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_Bundle{Bundle: &coordinatorv1.Bundle{Name: "x.ts"}}})
	refused(t, err, apierr.InvalidArgument, "x.ts", "empty")
	_, err = r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_Bundle{Bundle: &coordinatorv1.Bundle{Name: "x.ts", Code: []byte("))")}}})
	refused(t, err, apierr.InvalidArgument, "x.ts does not load")
	_, err = r.script("\nthrow new Error('on purpose');\nexport default async function flow() {}", `{}`)
	refused(t, err, apierr.InvalidArgument, "on purpose", "flow.ts:2:")
	_, err = r.script(`export const params = { type: "nonsense" }; export default async function flow() {}`, `{}`)
	refused(t, err, apierr.InvalidArgument, "`params`", "/type: ")
}

func TestDescribeWorkflow(t *testing.T) {
	r := newRig(t)
	d, err := r.client.DescribeWorkflow(t.Context(), &coordinatorv1.DescribeWorkflowRequest{Workflow: &coordinatorv1.DescribeWorkflowRequest_BuiltIn{BuiltIn: "map"}})
	if err != nil || d.GetName() != "map.ts" && d.GetName() != "map" || d.GetDescription() == "" || !strings.Contains(string(d.GetParamsSchemaJson()), `"prompt"`) {
		t.Errorf("map is %v, %v", d, err)
	}
	d, err = r.client.DescribeWorkflow(t.Context(), &coordinatorv1.DescribeWorkflowRequest{
		Workflow: &coordinatorv1.DescribeWorkflowRequest_Bundle{Bundle: bundle(t, "export default async function flow() {}")}})
	if err != nil || len(d.GetParamsSchemaJson()) != 0 {
		t.Errorf("a script without params is %v, %v", d, err)
	}
}

func TestAdmission(t *testing.T) {
	r := newRig(t, newMachine("attic"), newMachine("cellar"))
	_, err := r.submit("map", oneItem, "nobody:7b")
	refused(t, err, apierr.NotFound, "nobody:7b", "--on attic", "the cellar")
	if err != nil && (len(err.Next) == 0 || err.Next[0] != "loopkeeper models pull nobody:7b --on attic") {
		t.Errorf("the advice is %v", err.Next)
	}
	_, err = r.submit("map", oneItem, "small:1b", "huge:70b")
	refused(t, err, apierr.CannotFit, "huge:70b", "the attic needs 4", "the cellar needs 4", "has 7.", "short")
	if err != nil && len(err.Next) == 0 {
		t.Error("a model that fits nowhere comes without advice")
	}
	_, err = r.submit("map", oneItem, "")
	refused(t, err, apierr.InvalidArgument, "name")

	dry := &coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: "map"}, InputJson: []byte(oneItem), DryRun: true,
		Models: []string{"small:1b", "small:1b"}, Key: "k"}
	out, err := r.ask(dry)
	if err != nil || out.GetRunId() != "" || len(out.GetFits()) != 1 || len(out.GetNotes()) != 0 {
		t.Fatalf("the dry run says %v, %v", out, err)
	}
	fit := out.GetFits()[0]
	if fit.GetModel() != "small:1b" || len(fit.GetExplanation().GetNodes()) != 2 || fit.GetExplanation().GetNodes()[0].GetNeedBytes() == 0 ||
		!strings.Contains(fit.GetExplanation().GetSummary(), "4096 tokens") {
		t.Errorf("the fit is %v", fit)
	}
	if runs, err := r.client.ListRuns(t.Context(), &coordinatorv1.ListRunsRequest{}); err != nil || len(runs.GetRuns()) != 0 {
		t.Errorf("a dry run left %v, %v", runs, err)
	}
}

// A model that only makes embeddings answers no prompt, which is known before a run of prompts begins. A script may embed with it.
func TestAModelForEmbeddingsAnswersNoPrompt(t *testing.T) {
	m := newMachine("attic")
	m.report.Models = append(m.report.Models, &workerv1.Model{Name: "embed:latest", Digest: "ee", FileBytes: 1 << 28, Embedding: true, Shape: m.report.Models[0].Shape})
	r := newRig(t, m)
	for _, dry := range []bool{true, false} {
		q := &coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: "map"}, InputJson: []byte(oneItem), Models: []string{"small:1b", "embed"}, DryRun: dry}
		_, err := r.ask(q)
		refused(t, err, apierr.InvalidArgument, "embed only makes embeddings: it answers no prompt")
		if err != nil && len(err.Next) == 0 {
			t.Error("it comes without advice")
		}
	}
	out, err := r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_Bundle{Bundle: bundle(t, "export default async function flow() {}")}, Models: []string{"embed"}})
	if err != nil || len(out.GetNotes()) != 1 || !strings.Contains(out.GetNotes()[0], "only makes embeddings") {
		t.Errorf("a script: %v, %v", out, err)
	}
}

// A dry run says that nothing would begin now when every machine is paused.
func TestADryRunSaysWhatWouldWait(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	if _, err := r.client.UseNode(t.Context(), &coordinatorv1.UseNodeRequest{Node: "attic", Use: "pause"}); err != nil {
		t.Fatal(err)
	}
	out, err := r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: "map"}, InputJson: []byte(oneItem), Models: []string{"small:1b"}, DryRun: true})
	if err != nil || len(out.GetNotes()) != 1 || out.GetNotes()[0] != "small:1b waits for a machine: the attic (paused)" || out.GetFits()[0].GetExplanation().GetWaitingFor() != "node" {
		t.Errorf("%v, %v", out, err)
	}
}

func TestWithoutNodesARunIsAdmittedAndWaits(t *testing.T) {
	r := newRig(t)
	out, err := r.submit("map", oneItem, "small:1b")
	if err != nil || out.GetRunId() == "" || len(out.GetNotes()) != 1 || !strings.Contains(out.GetNotes()[0], "waits for a machine") {
		t.Fatalf("submit says %v, %v", out, err)
	}
	r.eventually("the run says what it waits for", func() bool {
		v, err := r.client.GetRun(t.Context(), &coordinatorv1.GetRunRequest{RunId: out.GetRunId()})
		return err == nil && len(v.GetRun().GetWaiting()) == 1 && v.GetRun().GetWaiting()[0].GetWaitingFor() == "node"
	})
}

func TestKeyReturnsItsRunBeforeAnythingCanRefuseIt(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	q := &coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: "map"}, InputJson: []byte(oneItem), Key: "night"}
	first, err := r.ask(q)
	if err != nil || first.GetExisting() {
		t.Fatal(first, err)
	}
	q.Models = []string{"nobody:7b"}
	again, err := r.ask(q)
	if err != nil || !again.GetExisting() || again.GetRunId() != first.GetRunId() {
		t.Errorf("the same key gives %v, %v", again, err)
	}
}

func TestTimeLimitMakesSense(t *testing.T) {
	r := newRig(t)
	for _, seconds := range []int64{-1, 1 << 62} {
		_, err := r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: "map"}, InputJson: []byte(oneItem), TimeLimitSeconds: seconds})
		refused(t, err, apierr.InvalidArgument, "time limit")
	}
}

// A key belongs to one job: another job under it is told so, and not given results that answer something else.
func TestKeyOfAnotherJobIsAConflict(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	a, err := r.put("a.txt", "one text")
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.put("b.txt", "another text")
	if err != nil {
		t.Fatal(err)
	}
	input := func(prompt, sha, name string) string {
		return `{"model":"small:1b","prompt":"` + prompt + ` {{item}}","items":[{"ref":"` + sha + `","name":"` + name + `"}]}`
	}
	ask := func(workflow, input string) (*coordinatorv1.SubmitResponse, *apierr.Error) {
		return r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_BuiltIn{BuiltIn: workflow}, InputJson: []byte(input), Key: "night"})
	}
	first, err := ask("map", input("Say", a.GetSha256(), "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]string{"same": input("Say", a.GetSha256(), "a.txt"), "in another order, under another name": `{"items":[{"name":"moved/a.txt","ref":"` +
		a.GetSha256() + `"}],"prompt":"Say {{item}}","model":"small:1b"}`} {
		if again, err := ask("map", in); err != nil || again.GetRunId() != first.GetRunId() {
			t.Errorf("%s: %v, %v", name, again, err)
		}
	}
	for name, c := range map[string]struct{ workflow, input, says string }{
		"prompt":   {"map", input("Shout", a.GetSha256(), "a.txt"), "another prompt"},
		"file":     {"map", input("Say", b.GetSha256(), "a.txt"), "another items"},
		"two":      {"map", input("Shout", b.GetSha256(), "a.txt"), "another items, prompt"},
		"workflow": {"plan", `{"goal":"g","planner":"small:1b","model":"small:1b"}`, "its workflow is map"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(c.workflow, c.input)
			refused(t, err, apierr.Conflict, first.GetRunId(), c.says)
			if err != nil && (len(err.Next) != 2 || err.Next[1] != "loopkeeper result "+first.GetRunId()) {
				t.Errorf("next: %q", err.Next)
			}
		})
	}
}

func TestKeyOfAnotherScriptIsAConflict(t *testing.T) {
	r := newRig(t, newMachine("attic"))
	ask := func(text string) (*coordinatorv1.SubmitResponse, *apierr.Error) {
		return r.ask(&coordinatorv1.SubmitRequest{Workflow: &coordinatorv1.SubmitRequest_Bundle{Bundle: bundle(t, text)}, InputJson: []byte("{}"), Key: "k"})
	}
	first, err := ask("export default async function flow() { return 1; }")
	if err != nil {
		t.Fatal(err)
	}
	_, err = ask("export default async function flow() { return 2; }")
	refused(t, err, apierr.Conflict, first.GetRunId(), "flow.ts has changed")
}

func TestATextInPlaceOfFilesSaysHowFilesAreGiven(t *testing.T) {
	r := newRig(t)
	_, err := r.script(`import { t } from "loopkeeper";
export const params = t.object({ notes: t.files(), rules: t.file(), words: t.array(t.string()) });
export default async function flow() {}`, `{"notes":"a.txt","rules":"b.txt","words":"c"}`)
	refused(t, err, apierr.InvalidArgument, `/notes: got string, want array (files are given as "@path")`,
		`/rules: got string, want object (files are given as "@path")`)
	if err != nil && strings.Count(err.Message, "@path") != 2 {
		t.Errorf("a list of texts is taken for files: %s", err.Message)
	}
}
