package script

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
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
