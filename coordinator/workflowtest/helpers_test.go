package workflowtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.uber.org/goleak"

	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/coordinator/workflows"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type obj = map[string]any

// judgement is a judge's view of all criteria alike: what it comes to, with the words of a line that shows it.
type judgement struct{ verdict, line string }

func judged(verdict, line string) judgement { return judgement{verdict, line} }

// answers are what a worker makes of it: a line for each criterion, and none where the judge cannot tell.
func (j judgement) answers(c call) obj {
	said := map[string]string{"passed": "met", "sent_back": "not_met", "needs_human": "cannot_tell"}[j.verdict]
	list := []obj{}
	criteria, _ := c.Request["criteria"].([]any)
	for _, criterion := range criteria {
		if more, ok := criterion.(obj); ok {
			criterion = more["text"]
		}
		answer := obj{"criterion": criterion, "said": said, "counted": said, "reason": "it seems so", "quotes": []obj{}}
		if said != "cannot_tell" {
			answer["quotes"] = []obj{{"quote": j.line, "in": "subject", "line": 1}}
		}
		list = append(list, answer)
	}
	return obj{"answers": list, "lines": 1}
}

// step is a step of a plan that reads and writes these names and stands alone with them; more is what else it says.
func step(id, reads, writes string, more ...obj) obj {
	s := obj{"id": id, "parts": []string{"g1"}, "instruction": "do " + id, "worker": "write", "reads": append([]string{}, strings.Fields(reads)...), "writes": append([]string{}, strings.Fields(writes)...),
		"after": []string{}, "depends_on": []string{}, "done_when": []string{id + " is there"}, "each": "", "why": obj{}}
	for _, m := range more {
		maps.Copy(s, m)
	}
	return s
}

// planOf is a plan as the workers' code makes it: each step waits for those that write what it reads.
func planOf(steps ...obj) obj {
	order, writer := []any{}, map[string]any{}
	for _, s := range steps {
		order = append(order, s["id"])
		for _, name := range s["reads"].([]string) {
			if w := writer[name]; w != nil {
				s["depends_on"] = append(s["depends_on"].([]string), fmt.Sprint(w))
			}
		}
		for _, name := range s["writes"].([]string) {
			writer[name] = s["id"]
		}
	}
	return obj{"outcome": "plan", "note": "one after the other", "questions": []string{}, "steps": steps, "order": order}
}

// outcome is what a planner says in place of a plan.
func outcome(what, note string, questions ...string) obj {
	return obj{"outcome": what, "note": note, "questions": append([]string{}, questions...), "steps": []obj{}, "order": []string{}}
}

func show(v any) string {
	text, _ := json.Marshal(v) // made of JSON's own types
	return string(text)
}

// described is what a built-in workflow says of itself.
func described(t *testing.T, name string) script.Interface {
	t.Helper()
	program, _ := workflows.Lookup(name)
	about, err := script.NewHost(script.Limits{}).Describe(context.Background(), program)
	if err != nil {
		t.Fatal(err)
	}
	return about
}

func compiled(t *testing.T, text json.RawMessage) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	if err := c.AddResource("params.json", value(t, string(text))); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("params.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func value(t *testing.T, text string) any {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}
