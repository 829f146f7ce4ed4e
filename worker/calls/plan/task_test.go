package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/proto/structure"
)

// All that the schema asks for is enforced by the grammar, and it stays small.
func TestSchemaGoesOutWhole(t *testing.T) {
	big := task()
	big.MaxSteps = mostSteps
	for len(big.Parts) < mostParts {
		big.Parts = append(big.Parts, "x")
	}
	for name, k := range map[string]Task{"small": {Goal: "x"}, "usual": task(), "big": big, "odd inputs": {Goal: "x", Inputs: []string{"für \"alle\".md", "a.md"}}} {
		raw := k.Schema()
		s, err := structure.Compile(raw)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, keyword := range []string{"pattern", "maxItems", "minItems", "minLength", "maxLength", "enum", "required", "minimum", "maximum", "anyOf"} {
			if asked, sent := strings.Count(string(raw), `"`+keyword+`"`), strings.Count(string(s.Format()), `"`+keyword+`"`); asked != sent {
				t.Errorf("%s: %s is asked for %d times and sent %d times: %s", name, keyword, asked, sent, s.Format())
			}
		}
		if len(raw) > 8<<10 {
			t.Errorf("%s: %d bytes", name, len(raw))
		}
		if each := strings.Contains(string(raw), "i_each"); each != (len(k.Lists) > 0) {
			t.Errorf("%s: template steps %t with %d lists", name, each, len(k.Lists))
		}
	}
}

func TestTasksThatCannotBePlanned(t *testing.T) {
	for word, k := range map[string]Task{
		"goal is empty": {Goal: " "},
		"max_steps":     {Goal: "x", MaxSteps: 41},
		"parts":         {Goal: "x", Parts: make([]string, 41)},
		"a-z":           {Goal: "x", Workers: []Worker{{Name: "Send Mail"}}},
		"called a":      {Goal: "x", Workers: []Worker{{Name: "a"}, {Name: "a"}}},
		`list ""`:       {Goal: "x", Lists: []List{{}}},
	} {
		if err := k.Check(); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", word, err)
		}
	}
	if err := task().Check(); err != nil {
		t.Error(err)
	}
}

func TestLiterals(t *testing.T) {
	for goal, want := range map[string][]string{
		"Write a poem about the sea.":                                nil,
		`Put "weekly report" and 'the end' into „Bericht“.`:          {"weekly report", "Bericht", "the end"},
		"Don't say it isn't there; they're fine.":                    nil,
		"Read src/main.go and notes.MD, e.g. or i.e. nothing else.":  {"src/main.go", "notes.MD"},
		"Between 2024-05-01 and 02:14 it cost $1,250.50 or 12.5%.":   {"2024", "05", "01", "02", "14", "1250.50", "12.5"},
		"1. Read it.\n2. Write 3 pages.":                             {"3"},
		"Compare Berlin, Paris and New York by area.":                {"Berlin", "Paris", "New York"},
		"Describe these: red, green, dark blue.":                     {"red", "green", "dark blue"},
		"Note: it is late, and we have to go home before it is dark": nil,
		"Cover:\n- price\n- size\n- how it was made and by whom":     {"price", "size"},
		"Read the file, sort it, and print it.":                      nil,
		"Use `go test` on v0.2.1 with qwen3:8b.":                     {"go test"},
	} {
		var got []string
		for _, l := range literals(goal) {
			got = append(got, l.text)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", goal, got, want)
		}
	}
}

// A literal is found again in other spellings of the same thing.
func TestLiteralsAreFoundAgain(t *testing.T) {
	for goal, instruction := range map[string]string{
		"Spend 1,000 euros.":          "Spend 1000 euros on what is needed.",
		"Use 1.5 litres.":             "Use 1,5 litres of water.",
		"Read pages 3-7.":             "Read the pages 3 to 7 of it.",
		"Say “good  morning” to all.": `Say "Good morning" to everybody.`,
		"Name 10% of them.":           "Name 10 % of all of them.",
		"Name twelve or 12 of them.":  "Name twelve of all of them.",
	} {
		d := draft{Outcome: Planned, Steps: []draftStep{{N: 1, Parts: []string{"g1"}, Instruction: instruction, Worker: DefaultWorker, DoneWhen: []string{"It is there."}}}}
		if _, reasons := read(t, Task{Goal: goal}, d); reasons != nil {
			t.Errorf("%q in %q: %q", goal, instruction, reasons)
		}
	}
}
