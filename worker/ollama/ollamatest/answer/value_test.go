package answer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// recorded is one line of what a real Ollama 0.17.4 did with a schema.
type recorded struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Old    *struct {
		Conforming int            `json:"conforming"`
		Violating  int            `json:"violating"`
		Truncated  int            `json:"truncated"`
		NotJSON    int            `json:"not_json"`
		Errors     map[string]int `json:"errors"`
	} `json:"old_engine"`
}

func recordings(t *testing.T) []recorded {
	t.Helper()
	f, err := os.Open("testdata/ollama-0.17.4.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []recorded
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var r recorded
		if err := json.Unmarshal(sc.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		var text string // a schema that JSON cannot hold, such as one with a repeated key, is kept as a string
		if json.Unmarshal(r.Schema, &text) == nil {
			r.Schema = json.RawMessage(text)
		}
		out = append(out, r)
	}
	if len(out) < 100 {
		t.Fatalf("only %d recordings", len(out))
	}
	return out
}

const prompt = `Say what changed.

<subject>
The parser was fixed in March. It now reads old files too, and it is faster than before.
A second change makes the writer atomic, so that a power cut loses nothing.
</subject>`

func validate(t *testing.T, schema, value []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatalf("schema: %v", err)
	}
	c := jsonschema.NewCompiler()
	if bytes.Contains(schema, []byte(`"items": [`)) {
		c.DefaultDraft(jsonschema.Draft7) // later drafts have no tuples of that form
	}
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatalf("schema: %v", err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("schema: %v", err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return fmt.Errorf("%s is no JSON: %w", value, err)
	}
	if err := compiled.Validate(v); err != nil {
		return fmt.Errorf("%s: %w", value, err)
	}
	return nil
}

// Every schema that a real Ollama enforced in all of its answers must be met here too, for every seed.
func TestValueMeetsEverySchemaThatOllamaEnforces(t *testing.T) {
	enforced := 0
	for _, r := range recordings(t) {
		if r.Old == nil || r.Old.Conforming == 0 || r.Old.Violating+r.Old.Truncated+r.Old.NotJSON > 0 {
			continue
		}
		if r.Name == "enum value of wrong type (type string, enum [1])" {
			continue // no value is valid; Ollama and we answer 1
		}
		enforced++
		t.Run(r.Name, func(t *testing.T) {
			for seed := range int64(20) {
				v, err := Value(Request{Prompt: prompt, Seed: seed, Reject: seed%2 == 1}, r.Schema)
				if err != nil {
					t.Fatal(err)
				}
				if err := validate(t, r.Schema, v); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if enforced < 60 {
		t.Fatalf("only %d enforced schemas were tried", enforced)
	}
}

// What a real Ollama answered with an error, or did not survive, must not get a value here either.
func TestSchemasThatHarmOllamaAreRefused(t *testing.T) {
	harms := map[string]Harm{
		"500 invalid JSON schema in format":   Refuses,
		"500 model runner has unexpectedly":   KillsRunner,
		"TimeoutError":                        Hangs,
		"RemoteDisconnected SERVER DIED rc=2": KillsServer,
	}
	tried := 0
	for _, r := range recordings(t) {
		if r.Old == nil || len(r.Old.Errors) == 0 || r.Old.Conforming+r.Old.Violating > 0 {
			continue
		}
		for text := range r.Old.Errors {
			for prefix, want := range harms {
				if !strings.HasPrefix(text, prefix) {
					continue
				}
				tried++
				_, err := Value(Request{Prompt: prompt}, r.Schema)
				var got *Refusal
				if !errors.As(err, &got) || got.Harm != want {
					t.Errorf("%s: got %v, want harm %d as recorded: %s", r.Name, err, want, text)
				}
			}
		}
	}
	if tried < 20 {
		t.Fatalf("only %d harmful schemas were tried", tried)
	}
}

// step is how our plans look; the fields are read back with their types, which strict decoding checks.
type planned struct {
	Steps []struct {
		ID    string   `json:"id"`
		Goal  string   `json:"goal"`
		After []string `json:"depends_on"`
	} `json:"steps"`
}

func planSchema(least, most int, id string) []byte {
	return fmt.Appendf(nil, `{"type":"object","required":["steps"],"properties":{"steps":{"type":"array","minItems":%d,"maxItems":%d,
"items":{"type":"object","required":["goal","depends_on","id"],"properties":{"goal":{"type":"string","minLength":10,"maxLength":200},
"depends_on":{"type":"array","items":{"type":"string"}},"id":%s}}}}}`, least, most, id)
}

// A plan is a graph that can be run: ids are unique, dependencies exist and come earlier, goals speak of the prompt.
func TestPlanIsAnAcyclicGraphInTheWordsOfTheGoal(t *testing.T) {
	for _, c := range []struct {
		name        string
		least, most int
		id          string
		steps       int
	}{
		{"five by default", 0, 12, `{"type":"string"}`, 5},
		{"one", 1, 1, `{"type":"string"}`, 1},
		{"two", 0, 2, `{"type":"string"}`, 2},
		{"three", 0, 3, `{"type":"string"}`, 3},
		{"four", 4, 4, `{"type":"string"}`, 4},
		{"nine", 9, 9, `{"type":"string"}`, 9},
		{"ids by pattern", 0, 8, `{"type":"string","pattern":"^[a-z]{2}[0-9]$"}`, 5},
		{"ids by enum", 0, 8, `{"enum":["a","b","c","d","e","f"]}`, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			schema := planSchema(c.least, c.most, c.id)
			v, err := Value(Request{Prompt: "Goal: Compare both storage engines.\n\nMaterial follows here, in some words."}, schema)
			if err != nil {
				t.Fatal(err)
			}
			if err := validate(t, schema, v); err != nil {
				t.Fatal(err)
			}
			var p planned
			if err := json.Unmarshal(v, &p); err != nil {
				t.Fatal(err)
			}
			if len(p.Steps) != c.steps {
				t.Errorf("%d steps, want %d", len(p.Steps), c.steps)
			}
			seen := map[string]bool{}
			for i, s := range p.Steps {
				for _, id := range s.After {
					if !seen[id] {
						t.Errorf("step %d (%s) follows %q, which is not before it", i, s.ID, id)
					}
				}
				if i > 0 && len(s.After) == 0 {
					t.Errorf("step %d follows nothing", i)
				}
				if seen[s.ID] || s.ID == "" {
					t.Errorf("id %q is empty or not unique", s.ID)
				}
				seen[s.ID] = true
				if !strings.Contains(s.Goal, "Compare both storage engines") {
					t.Errorf("goal %q does not name the goal", s.Goal)
				}
			}
		})
	}
}

// The two schemas that research/judgement.md §4 proposes.
const (
	checkSchema = `{"type":"object","additionalProperties":false,"required":["a_evidence","b_against","c_reason","d_result"],"properties":{
"a_evidence":{"type":"array","maxItems":3,"items":{"type":"object","additionalProperties":false,"required":["a_line","b_words"],
  "properties":{"a_line":{"type":"integer","minimum":1,"maximum":212},"b_words":{"type":"string","minLength":3,"maxLength":80}}}},
"b_against":{"type":"string","maxLength":200},"c_reason":{"type":"string","minLength":10,"maxLength":240},
"d_result":{"enum":["met","not_met","cannot_tell"]}}}`
	workerPlanSchema = `{"type":"object","additionalProperties":false,"required":["a_note","b_outcome","c_questions","d_steps"],"properties":{
"a_note":{"type":"string","minLength":10,"maxLength":240},"b_outcome":{"enum":["need_info","plan","impossible"]},
"c_questions":{"type":"array","maxItems":3,"items":{"type":"string","minLength":8,"maxLength":160}},
"d_steps":{"type":"array","maxItems":8,"items":{"type":"object","additionalProperties":false,
 "required":["a_n","b_parts","c_instruction","d_worker","e_reads","f_writes","g_after","h_done_when"],"properties":{
 "a_n":{"type":"integer","minimum":1,"maximum":8},"b_parts":{"type":"array","minItems":1,"maxItems":3,"items":{"enum":["g1","g2","g3"]}},
 "c_instruction":{"type":"string","minLength":15,"maxLength":320},"d_worker":{"enum":["search","draft","run_tests","ask_human"]},
 "e_reads":{"type":"array","maxItems":3,"items":{"type":"string","pattern":"^[a-z0-9_./-]{1,48}$"}},
 "f_writes":{"type":"array","maxItems":3,"items":{"type":"string","pattern":"^[a-z0-9_./-]{1,48}$"}},
 "g_after":{"type":"array","maxItems":3,"items":{"type":"integer","minimum":1,"maximum":8}},
 "h_done_when":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","minLength":10,"maxLength":140}}}}}}}`
)

func TestNumberedPlan(t *testing.T) {
	v, err := Value(Request{Prompt: prompt}, []byte(workerPlanSchema))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate(t, []byte(workerPlanSchema), v); err != nil {
		t.Fatal(err)
	}
	var p struct {
		Outcome string `json:"b_outcome"`
		Steps   []struct {
			N     int   `json:"a_n"`
			After []int `json:"g_after"`
		} `json:"d_steps"`
	}
	if err := json.Unmarshal(v, &p); err != nil {
		t.Fatal(err)
	}
	if p.Outcome != "plan" || len(p.Steps) != 4 { // one for each part, and one that joins them
		t.Fatalf("outcome %s with %d steps", p.Outcome, len(p.Steps))
	}
	for i, s := range p.Steps {
		if s.N != i+1 || (len(s.After) == 3) != (i == 3) {
			t.Errorf("step %d: %+v", i, s)
		}
	}
}

// The free answer of a judge names a line of the subject, by its number, and nothing of what stands around it.
func TestTextNamesLines(t *testing.T) {
	text := Text(Request{Prompt: "You check a text.\n\n## Subject\nL0007|A power cut loses nothing at all.\n\nName every line that counts. Then weigh it up.\n\n## Criterion\nIt speaks of power cuts."})
	if !strings.Contains(text, `Line 7 says "A power cut loses nothing at all."`) || !strings.Contains(text, "It speaks of power cuts.") || strings.Contains(text, "weigh") {
		t.Error(text)
	}
}

// A verdict quotes what stands in the subject, at the line that the subject's own marks give, and passes or not as told.
func TestVerdictQuotesTheSubject(t *testing.T) {
	marked := "Is there a power-cut guarantee? Judge by this quotable rule only.\n\n<subject>\nL0041|The parser reads old files.\nL0042|A power cut loses nothing at all.\n</subject>\n"
	lines := map[int]string{41: "The parser reads old files.", 42: "A power cut loses nothing at all."}
	for _, reject := range []bool{false, true} {
		v, err := Value(Request{Prompt: marked, Reject: reject}, []byte(checkSchema))
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, []byte(checkSchema), v); err != nil {
			t.Fatal(err)
		}
		var got struct {
			Evidence []struct {
				Line  int    `json:"a_line"`
				Words string `json:"b_words"`
			} `json:"a_evidence"`
			Result string `json:"d_result"`
		}
		if err := json.Unmarshal(v, &got); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{false: "met", true: "not_met"}[reject]; got.Result != want {
			t.Errorf("result %s, want %s", got.Result, want)
		}
		if len(got.Evidence) == 0 {
			t.Error("no evidence")
		}
		for _, e := range got.Evidence {
			if lines[e.Line] == "" || !strings.Contains(lines[e.Line], e.Words) {
				t.Errorf("line %d is quoted as %q", e.Line, e.Words)
			}
		}
	}
}

func TestTextIsMadeOfThePromptsOwnSentences(t *testing.T) {
	text := Text(Request{Prompt: prompt})
	for _, sentence := range sentences(text) {
		if !strings.Contains(prompt, sentence) {
			t.Errorf("%q does not occur in the prompt", sentence)
		}
	}
	if strings.Contains(text, "Say what changed") {
		t.Errorf("the instruction is in the answer: %q", text)
	}
	if again := Text(Request{Prompt: prompt}); again != text {
		t.Errorf("the same request was answered %q and %q", text, again)
	}
	if empty := Text(Request{}); empty == "" {
		t.Error("an empty request gets no answer at all")
	}
}

// A prompt that spells its schema out is answered from the material, not from the schema.
func TestAnswerIsNotMadeOfTheSchema(t *testing.T) {
	schema := `{"type":"object","required":["summary"],"properties":{"summary":{"type":"string","description":"what the text says in a few words"}}}`
	v, err := Value(Request{Prompt: "Answer with one JSON value that follows this JSON Schema, and nothing else:\n" + schema +
		"\n\nSummarise in three points.\n\nThe parser was fixed in March. A power cut loses nothing at all."}, []byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"summary":"The parser was fixed in March. A power cut loses nothing at all."}`; string(v) != want {
		t.Errorf("%s, want %s", v, want)
	}
}

func FuzzValue(f *testing.F) {
	for _, s := range []string{checkSchema, workerPlanSchema, `{}`, `{"type":"array","minItems":3}`, `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`} {
		f.Add("Goal: x\n\nSome words here.", []byte(s))
	}
	f.Fuzz(func(t *testing.T, prompt string, schema []byte) {
		v, err := Value(Request{Prompt: prompt}, schema)
		if err == nil && !json.Valid(v) {
			t.Errorf("%q is no JSON", v)
		}
	})
}
