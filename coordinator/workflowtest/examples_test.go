package workflowtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

var update = flag.Bool("update", false, "write the outputs of the examples anew")

const examples = "../../examples/workflows/"

// scribe is a file.write that writes nothing.
type scribe struct{}

func (scribe) Effect(tool string) (engine.ToolEffect, bool) {
	return engine.EffectLocal, tool == "file.write"
}

func (scribe) Run(_ context.Context, c engine.ToolCall) (engine.ToolOutcome, error) {
	var in struct{ Path string }
	err := json.Unmarshal(c.Input, &in)
	return engine.ToolOutcome{Value: json.RawMessage(show(map[string]any{"path": in.Path, "created": true}))}, err
}

func (scribe) Check(context.Context, engine.ToolCall) (engine.ToolChecked, error) {
	return engine.ToolChecked{State: engine.ToolDone}, nil
}

// modelsOf are answers as a good model's would be, by example.
var modelsOf = map[string]struct {
	workflow string
	answer   func(c call) any
}{
	"map": {"map", func(c call) any {
		if c.Kind == engine.CallEvaluate {
			return judged("passed", "")
		}
		return "It is about one thing."
	}},
	"jobs": {"partition", func(c call) any {
		switch c.Body.(map[string]any)["name"] {
		case "pages/harbour.txt":
			return []obj{{"title": "carpenter, 20 hours a week", "place": "Kiel", "fits": "part time"}}
		case "pages/oldtown.txt":
			return []obj{{"title": "Carpenter wanted", "place": "Eckernfoerde", "fits": "28 km from Kiel"}}
		}
		return []obj{}
	}},
	"filter": {"map-reduce", func(c call) any {
		out := []obj{}
		for i, item := range rows(c) {
			verdict := map[bool]string{true: "keep", false: "drop"}[strings.Contains(strings.ToLower(item), "carpenter")]
			out = append(out, obj{"n": i + 1, "answer": obj{"verdict": verdict, "why": "the trade"}})
		}
		return out
	}},
	"research": {"partition", func(c call) any {
		if strings.HasPrefix(c.Label, "questions") {
			return obj{"questions": []string{"What does it cost?", "What does it need?", "How long does it last?"}}
		}
		return "It costs something."
	}},
	"letters": {"start", func(call) any { return "Dear friend" }},
	"plan": {"plan", func(c call) any {
		switch c.Kind {
		case engine.CallPlan:
			return planOf(
				step("s1", "../docs/backup.md ../docs/models.md ../docs/network.md", "changes.md", obj{"instruction": "List what changed in the documents", "done_when": []string{"Every change is in the list"}}),
				step("s2", "changes.md", "notes.md", obj{"instruction": "Write the notes from changes.md", "done_when": []string{"The notes name every change of the list"}}))
		case engine.CallEvaluate:
			return judged("passed", "the text names every change")
		}
		return "Backups start by themselves."
	}},
	"until":    {"until", func(call) any { return "Plug in the disk, then `backup start`. Green lamp: done." }},
	"pipeline": {"pipeline", developers(func(call) any { return nil })},
	"ask": {"ask", func(call) any {
		return obj{"workflow": "map", "input": obj{"model": "qwen3:8b", "prompt": "Sum up in three points.\n\n{{item}}", "files": []string{"@docs/*.md"}}}
	}},
}

// TestTheExamplesGiveWhatTheyShow runs each example through the engine, with its own workflows, and compares all outputs with the file beside it.
func TestTheExamplesGiveWhatTheyShow(t *testing.T) {
	files, err := filepath.Glob(examples + "*.json")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(examples + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	own := map[string]script.Program{}
	for _, name := range []string{"search", "research", "letter"} {
		if own[name], err = script.Bundle(examples + name + ".ts"); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		model, known := modelsOf[name]
		if name == "tsconfig" || strings.HasSuffix(name, ".out") {
			continue
		}
		if seen++; !known || !strings.Contains(string(readme), "`"+name+".json`") {
			t.Errorf("%s is not tested, or not in the README", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			c := newCoordinator(t, own, model.answer)
			input := c.input(file)
			about := described(t, model.workflow)
			if err := compiled(t, about.ParamsSchema).Validate(value(t, input)); err != nil {
				t.Fatal(err)
			}
			id := c.start(model.workflow, input)
			v := c.end(id, agreeable)
			if v.Status != run.Completed {
				t.Errorf("%s: %s %+v", v.Status, v.Error, v.Acceptance)
			}
			if again, err := c.e.Replay(t.Context(), id); err != nil || again.Divergence != nil {
				t.Errorf("its replay: %v, %+v", err, again.Divergence)
			}
			for _, started := range v.Children {
				if v := c.end(started, agreeable); v.Status != run.Completed {
					t.Errorf("its run %s: %s", v.Status, v.Error)
				}
			}
			golden(t, examples+name+".out.json", c.outputs(id))
		})
	}
	if seen != len(modelsOf) {
		t.Errorf("%d examples for %d", seen, len(modelsOf))
	}
}

// input reads an example and stores the files that it names, as the command line does.
func (c *coordinator) input(file string) string {
	c.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		c.t.Fatal(err)
	}
	if strings.HasSuffix(file, "ask.json") {
		return string(text) // its files are only named
	}
	return regexp.MustCompile(`"@[^"]*"`).ReplaceAllStringFunc(string(text), func(found string) string {
		paths, err := filepath.Glob(examples + strings.Trim(found, `"@`))
		if err != nil || len(paths) == 0 {
			c.t.Fatalf("no file is %s, %v", found, err)
		}
		var refs []string
		for _, path := range paths {
			body, err := os.ReadFile(path)
			if err != nil {
				c.t.Fatal(err)
			}
			name, _ := filepath.Rel(examples, path)
			stored, err := c.store.PutArtifact(c.t.Context(), name, bytes.NewReader(body))
			if err != nil {
				c.t.Fatal(err)
			}
			refs = append(refs, show(obj{"ref": stored.SHA256, "name": filepath.ToSlash(name), "bytes": len(body)}))
		}
		return strings.Join(refs, ",")
	})
}

// outputs are all key results of a run, with "RUN" for the ids of runs, which are random.
func (c *coordinator) outputs(id string) string {
	c.t.Helper()
	outputs, err := c.e.Outputs(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	all := obj{}
	for _, o := range outputs {
		if all[o.Name] = o.Value; o.Ref != nil {
			all[o.Name] = o.Ref
		}
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(all); err != nil {
		c.t.Fatal(err)
	}
	return regexp.MustCompile(`"run": "[^"]*"`).ReplaceAllString(text.String(), `"run": "RUN"`)
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s has\n%s\ngot\n%s", file, want, got)
	}
}

// The compiler is an npm package that only CI has for sure.
func TestTheExamplesConform(t *testing.T) {
	tsc, err := exec.LookPath("tsc")
	if err != nil {
		t.Skip("left out: the examples are checked where tsc (npm install --global typescript) is installed")
	}
	if out, err := exec.Command(tsc, "--project", examples).CombinedOutput(); err != nil {
		t.Errorf("tsc: %v\n%s", err, out)
	}
}
