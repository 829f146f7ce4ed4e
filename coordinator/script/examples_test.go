package script

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const reviewInput = `{"files":[{"bytes":1,"name":"a.md","ref":"aa"},{"bytes":1,"name":"b.md","ref":"bb"}],"model":"m","rules":{"bytes":1,"name":"rules.md","ref":"cc"}}`

func TestTheReviewExampleRuns(t *testing.T) {
	program, err := Bundle("../../examples/review.ts")
	if err != nil {
		t.Fatal(err)
	}
	s, y, err := NewHost(Limits{}).Start(context.Background(), Start{Program: program, Input: json.RawMessage(reviewInput)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if text := lines(y.Requests); !strings.Contains(text, `"context":[{"bytes":1,"name":"rules.md","ref":"cc"}]`) || !strings.Contains(text, `"model":"m"}`) {
		t.Errorf("asked %s", text)
	}
	y, err = s.Deliver(context.Background(), Delivery{Pos: 0, Value: json.RawMessage(`{"total":2,"succeeded":1,"failed":1,"coverage":0.5,"items":[` +
		`{"index":0,"key":"a.md","status":"succeeded","value":[{"line":1,"quote":"q","problem":"p"}]},{"index":1,"key":"b.md","status":"failed","failure":{"kind":"empty_turn","message":"m"}}]}`)})
	if err != nil {
		t.Fatal(err)
	}
	want(t, lines(y.Requests), `output {"name":"findings","sources":[0],"value":[{"file":"a.md","findings":[{"line":1,"problem":"p","quote":"q"}]},{"file":"b.md","findings":[]}]}
log {"level":"info","text":"1 findings in 1 of 2 files"}
output {"inferred":true,"name":"result","sources":[0],"value":{"files":2,"findings":1,"reviewed":1}}`)
}

const (
	someFile  = `{"bytes":1,"name":"a.md","ref":"aa"}`
	someModel = `"model":"m"`
)

// Each example runs to its end whatever the models and people say, and shows what its line in the README promises.
func TestTheExamplesRun(t *testing.T) {
	cases := map[string]struct{ input, shows string }{
		"review.ts":  {reviewInput, "batch output log"},
		"facts.ts":   {`{"files":[` + someFile + `],` + someModel + `}`, "batch check read generate output"},
		"letters.ts": {`{"people":[{"name":"A","about":"x"},{"name":"B","about":"y"}],` + someModel + `}`, "question generate approve sleep tool collected"},
		"shorten.ts": {`{"path":"a.md","words":10,` + someModel + `}`, "tool read until generate"},
		"nightly.ts": {`{"messages":{"lines":` + someFile + `},"small":"s","large":"l"}`, "batch page expect cover waive fallback"},
		"feature.ts": {`{"wish":"w","rules":` + someFile + `,` + someModel + `,"judge":"j"}`, "phase generate question evaluate"},
		"answer.ts":  {`{"question":"q","folder":"f",` + someModel + `,"embedder":"e"}`, "plan embed spawn tool batch evaluate"},
	}
	files, err := filepath.Glob("../../examples/*.ts")
	if err != nil || len(files) != len(cases) {
		t.Errorf("%d examples are tested, of %d", len(cases), len(files))
	}
	readme, err := os.ReadFile("../../examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p, err := Bundle("../../examples/" + name)
			if err != nil {
				t.Fatal(err)
			}
			found, err := NewHost(Limits{}).Describe(context.Background(), p)
			if err != nil || found.Description == "" || len(found.ParamsSchema) == 0 || !strings.Contains(string(readme), "| `"+name+"` |") {
				t.Errorf("interface %+v, %v; or it is missing in the README", found, err)
			}
			seen := map[string]bool{}
			for seed := range uint64(8) {
				_, kinds := played(t, NewHost(Limits{}), p, c.input, seed, 1)
				maps.Copy(seen, kinds)
			}
			for _, kind := range strings.Fields(c.shows) {
				if !seen[kind] {
					t.Errorf("no run had a %s", kind)
				}
			}
		})
	}
}

// The compiler is an npm package that only CI has for sure.
func TestTypesHoldForTheCompiler(t *testing.T) {
	tsc, err := exec.LookPath("tsc")
	if err != nil {
		t.Skip("left out: the types of loopkeeper.d.ts are checked where tsc (npm install --global typescript) is installed")
	}
	out, err := exec.Command(tsc, "--project", "../../examples").CombinedOutput()
	if err != nil {
		t.Errorf("tsc: %v\n%s", err, out)
	}
}

// loopkeeper.d.ts has to name everything that the library exports, or an editor would call it a mistake.
func TestEveryExportIsDeclared(t *testing.T) {
	index, err := os.ReadFile("lib/index.ts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(index)) {
		_, names, found := strings.Cut(line, "export {")
		if !found {
			continue
		}
		names, _, _ = strings.Cut(names, "}")
		for name := range strings.SplitSeq(names, ",") {
			name = strings.TrimSpace(name)
			declared := false
			for _, keyword := range []string{"function ", "const ", "class ", "namespace "} {
				declared = declared || strings.Contains(Types, "export "+keyword+name)
			}
			if !declared {
				t.Errorf("loopkeeper.d.ts does not declare %s", name)
			}
		}
	}
}
