package structure

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// lines reads a JSONL file of testdata.
func lines[T any](t testing.TB, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []T
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var v T
		if err := json.Unmarshal(scanner.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		out = append(out, v)
	}
	if err := scanner.Err(); err != nil || len(out) == 0 {
		t.Fatalf("%s: %d lines, %v", path, len(out), err)
	}
	return out
}

type extractionCase struct {
	Name       string
	Schema     json.RawMessage
	Response   string
	Thinking   string
	DoneReason string `json:"done_reason"`
	Want       struct {
		Value json.RawMessage
		Kind  string
	}
}

func compact(t testing.TB, raw json.RawMessage) string {
	t.Helper()
	n, err := parseNode(raw, false)
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return string(n.encode())
}

func mustCompile(t testing.TB, raw string) *Schema {
	t.Helper()
	s, err := Compile(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("schema %s: %v", raw, err)
	}
	return s
}

// kinds are the words of the recorded cases.
var kinds = map[Finding]string{Nothing: "empty_turn", NoStructure: "text_instead_of_structure", Refused: "schema_violation", Cut: "truncated"}

// The cases are shapes of output that users of other programs really got, with the right outcome.
func TestExtractRecordedCases(t *testing.T) {
	cases := lines[extractionCase](t, "testdata/extraction-cases.jsonl")
	if len(cases) != 21 {
		t.Fatalf("%d cases, want all 21", len(cases))
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			got := mustCompile(t, string(c.Schema)).Extract(c.Response, c.Thinking, c.DoneReason == "length")
			if c.Want.Kind != "" {
				if kinds[got.Finding] != c.Want.Kind || got.Value != nil {
					t.Fatalf("%s, value %s, want %s", kinds[got.Finding], got.Value, c.Want.Kind)
				}
				return
			}
			if got.Finding != Value || string(got.Value) != compact(t, c.Want.Value) {
				t.Fatalf("%s %v, value %s, want %s", kinds[got.Finding], got.Reasons, got.Value, c.Want.Value)
			}
		})
	}
}

func TestExtractMore(t *testing.T) {
	const permissive = `{"type":"object","properties":{"a":{"type":"object"},"b":{}}}`
	const closed = `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`
	for name, c := range map[string]struct {
		schema, answer, thinking string
		finding                  Finding
		value                    string
	}{
		"a fragment never stands in for its broken whole":   {permissive, `{"a": {"b": 1}`, "", Value, `{"a":{"b":1}}`},
		"a draft in the thoughts is no answer":              {closed, `<think>{"a":1}</think>I cannot.`, "", NoStructure, ""},
		"thoughts that are never closed are no answer":      {closed, `<think>so {"a":1}`, "", Nothing, ""},
		"the template opened the thoughts":                  {closed, "hm {\"a\":1}\n</think>\n{\"a\":2}", "", Value, `{"a":2}`},
		"prose in the thinking field stays there":           {closed, "", `I would say {"a":1}`, Nothing, ""},
		"a tag inside a string is data":                     {`{"type":"object","properties":{"s":{"type":"string"}}}`, `{"s":"x</think>\ny"}`, "", Value, `{"s":"x</think>\ny"}`},
		"a number that would eat the memory":                {closed, `{"a":1e999999999}`, "", Refused, ""},
		"the same key twice with the same value":            {closed, `{"a":1,"a":1}`, "", Value, `{"a":1}`},
		"a contradiction deep inside prose":                 {closed, `Here: {"a":1,"a":2} done`, "", Refused, ""},
		"a contradiction that only repair would show":       {closed, `{"a":1,"a":2,}`, "", Refused, ""},
		"a stray bracket in the prose before":               {closed, "see [1: {\"a\":3}", "", Value, `{"a":3}`},
		"a root that is no object":                          {`{"enum":["x","y"]}`, " \"y\"\n", "", Value, `"y"`},
		"the order of keys and the text of numbers survive": {`{}`, `{"z":1.50,"a":1e2}`, "", Value, `{"z":1.50,"a":1e2}`},
		"angle brackets are not escaped":                    {`{}`, `{"z":"<b>&"}`, "", Value, `{"z":"<b>&"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := mustCompile(t, c.schema).Extract(c.answer, c.thinking, false)
			if got.Finding != c.finding || string(got.Value) != c.value {
				t.Fatalf("%d %s %v, want %d %s", got.Finding, got.Value, got.Reasons, c.finding, c.value)
			}
		})
	}
}

func TestExtractSaysWhatItBent(t *testing.T) {
	s := mustCompile(t, `{"type":"object","required":["a"]}`)
	for answer, want := range map[string][]string{
		`{"a":1}`:           nil,
		"```\n{\"a\":1}```": nil,
		`so {"a":1}`:        {NoteEmbedded},
		`{"a":1,}`:          {NoteRepaired},
	} {
		if got := s.Extract(answer, "", false); got.Finding != Value || !slices.Equal(got.Notes, want) {
			t.Errorf("%s: %d, notes %q, want %q", answer, got.Finding, got.Notes, want)
		}
	}
}

// hostile are inputs on which the repair library or a naive search needs time that grows with the square of the length.
func hostile(n int) map[string]string {
	return map[string]string{
		"openings":        strings.Repeat("[", n),
		"nested keys":     strings.Repeat(`{"a":`, n/5),
		"quotes in text":  `{"a": "` + strings.Repeat(`x" y`, n/4) + "}",
		"escaped quotes":  strings.Repeat(`\"`, n/2),
		"broken pairs":    strings.Repeat("{a}", n/3),
		"nested brackets": strings.Repeat("{", n/2) + strings.Repeat("}", n/2),
		"think tags":      strings.Repeat("<think>", n/7),
		"fences":          strings.Repeat("```\n", n/4),
		"valid but wrong": "[" + strings.Repeat(`{"b":1},`, n/8) + "{}]",
		"many values":     strings.Repeat(`{"b":1} `, n/8),
	}
}

func TestExtractTimeIsLinear(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}`)
	const n = 1 << 17
	for name, text := range hostile(n) {
		start := time.Now()
		if got := s.Extract(text, "", false); got.Finding == Value {
			t.Errorf("%s: accepted %s", name, got.Value)
		}
		// In the square of the length, the repair library alone would take a minute for most of these; the bound leaves
		// room for a slow machine under the race detector.
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: %s for %d bytes", name, took, n)
		}
	}
}

func FuzzExtract(f *testing.F) {
	for _, c := range lines[extractionCase](f, "testdata/extraction-cases.jsonl") {
		f.Add(string(c.Schema), c.Response, c.Thinking, c.DoneReason == "length")
	}
	for _, text := range hostile(2000) {
		f.Add(`{"type":"object","required":["a"]}`, text, text, false)
	}
	f.Fuzz(func(t *testing.T, rawSchema, answer, thinking string, cut bool) {
		s, err := Compile(json.RawMessage(rawSchema))
		if err != nil {
			return
		}
		start := time.Now()
		got := s.Extract(answer, thinking, cut)
		if limit := 10*time.Second + time.Duration(len(answer))*time.Millisecond; time.Since(start) > limit {
			t.Fatalf("%s for %d bytes", time.Since(start), len(answer))
		}
		if (got.Finding == Value) != (got.Value != nil) {
			t.Fatalf("finding %d with value %q", got.Finding, got.Value)
		}
		if got.Finding != Value {
			return
		}
		if cut {
			t.Fatal("took a value out of an answer that was cut off")
		}
		v, err := parseNode(got.Value, false)
		if err != nil {
			t.Fatalf("value %s: %v", got.Value, err)
		}
		if s.validate(v) != nil {
			t.Fatalf("value %s that the schema refuses", got.Value)
		}
	})
}

// Half of a surrogate pair is no character: a script could not pass it on, so it must not get there.
func TestExtractReplacesHalfCharacters(t *testing.T) {
	s, err := Compile([]byte(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`))
	if err != nil {
		t.Fatal(err)
	}
	e := s.Extract(`{"a":"x\ud83d y \ud83d\ude00"}`, "", false)
	if got := string(e.Value); got != "{\"a\":\"x\uFFFD y \U0001F600\"}" {
		t.Errorf("got %q", got)
	}
}
