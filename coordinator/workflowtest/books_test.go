package workflowtest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

// rows are what a chunk holds, as map-reduce asks for it.
func rows(c call) (items []string) {
	for _, row := range c.Body.([]any) {
		items = append(items, fmt.Sprint(row.(map[string]any)["item"]))
	}
	return items
}

type row struct {
	N      int    `json:"n"`
	Answer string `json:"answer"`
}

type answered struct{ Key, Answer string }

type counts struct {
	Items   int
	Missing []string
}

// TestMapReduceNeverClaimsMoreThanItsAnswersHeld lets chunks fail, leave items out, answer twice, answer differently and answer for
// items that there are not; then every answer in the output was given, and the run is completed exactly when none is missing.
func TestMapReduceNeverClaimsMoreThanItsAnswersHeld(t *testing.T) {
	ends := map[run.Status]int{}
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 1))
		harm := rng.Float64() // how bad the model is
		given := map[string]map[string]bool{}
		c := newCoordinator(t, nil, func(c call) any {
			if rng.Float64() < harm/2 {
				return failure("schema_violation")
			}
			out := []row{}
			for i, item := range rows(c) {
				answers := []string{"about " + item}
				switch roll := rng.Float64() / harm; {
				case roll < 0.3:
					answers = nil
				case roll < 0.5:
					answers = append(answers, answers[0])
				case roll < 0.7:
					answers = append(answers, "something else")
				case roll < 0.9:
					out = append(out, row{99, "of nothing"})
				}
				for _, a := range answers {
					out = append(out, row{i + 1, a})
				}
				if len(slices.Compact(answers)) == 1 {
					given[item] = map[string]bool{answers[0]: true}
				}
			}
			return out
		})
		var items []string
		for i := range 23 {
			items = append(items, fmt.Sprint("thing ", i%20)) // three are there twice
		}
		id := c.start("map-reduce", show(map[string]any{"model": "m", "prompt": "What is it about?", "items": items, "chunk": 5, "rounds": 3}))
		v := c.end(id, nobody)
		ends[v.Status]++

		var got []answered
		c.output(id, "answers", &got)
		var n counts
		c.output(id, "counts", &n)
		for _, a := range got {
			var i int
			fmt.Sscanf(a.Key, "item %d", &i)
			if !given[items[i-1]][a.Answer] {
				t.Errorf("seed %d: %+v was never answered", seed, a)
			}
			if slices.Contains(n.Missing, a.Key) {
				t.Errorf("seed %d: %s is answered and missing", seed, a.Key)
			}
		}
		if len(got)+len(n.Missing) != len(items) || n.Items != len(items) {
			t.Errorf("seed %d: %d answers, %+v, of %d", seed, len(got), n, len(items))
		}
		if complete := len(n.Missing) == 0; (v.Status == run.Completed) != complete || !complete && v.Status != run.Incomplete {
			t.Errorf("seed %d: the run is %s with %d missing", seed, v.Status, len(n.Missing))
		}
		if a := v.Acceptance; a.Expected != len(items) || a.Covered != len(got) || a.Failed+a.Uncovered+a.Handled != len(n.Missing) {
			t.Errorf("seed %d: %d answers, and the books say %+v", seed, len(got), a)
		}
	}
	if ends[run.Completed] < 2 || ends[run.Incomplete] < 2 {
		t.Errorf("the seeds show too little: %v", ends)
	}
}

// TestMapReduceFilters is a filter as it used to be a model's loop: verdicts by chunk, flattened, each kept once.
func TestMapReduceFilters(t *testing.T) {
	forgot := false
	c := newCoordinator(t, nil, func(c call) any {
		if c.Label == "reduce" {
			return "Two are worth reading."
		}
		var out []any
		for i, item := range rows(c) {
			if item == "c" && !forgot {
				forgot = true // one is missing from its chunk's answer
				continue
			}
			keep := []string{" Keep", "drop"}[strings.Index("abcd", item)/2]
			out = append(out, map[string]any{"n": i + 1, "answer": map[string]any{"verdict": keep, "why": "w" + item}})
		}
		return out
	})
	id := c.start("map-reduce", `{"model":"m","prompt":"Keep or drop?","items":["a","b","c","d","a"],"chunk":3,"unique":"verdict",
		"answer":{"type":"object"},"reduce":{"prompt":"Sum up."}}`, run.Submitted{Key: "item 3"})
	if v := c.end(id, nobody); v.Status != run.Completed || v.Acceptance.Expected != 5 || v.Acceptance.Covered != 5 {
		t.Fatalf("%s, %+v", v.Status, v.Acceptance)
	}
	var values []struct {
		Value struct{ Verdict, Why string }
		Keys  []string
	}
	c.output(id, "values", &values)
	if got, want := show(values), `[{"Value":{"Verdict":" Keep","Why":"wa"},"Keys":["item 1","item 5","item 2"]},{"Value":{"Verdict":"drop","Why":"wc"},"Keys":["item 3","item 4"]}]`; got != want {
		t.Errorf("values %s\nwant   %s", got, want)
	}
	if got, want := c.staff.labels(), "round 1, round 1, round 2, reduce"; got != want {
		t.Errorf("calls %s, want %s", got, want)
	}
}

// TestMapReduceWaivesAFailureOnlyWhenItWasMadeGood by answers to each of the chunk's items.
func TestMapReduceWaivesAFailureOnlyWhenItWasMadeGood(t *testing.T) {
	for bad, want := range map[string]string{"b": "incomplete, 0 waived, 3 swallowed", "nothing": "completed, 1 waived, 0 swallowed"} {
		c := newCoordinator(t, nil, func(c call) any {
			items := rows(c)
			if slices.Contains(items, bad) || c.Label == "round 1" && items[0] == "a" {
				return failure("schema_violation")
			}
			out := []row{}
			for i := range items {
				out = append(out, row{i + 1, "x"})
			}
			return out
		})
		v := c.end(c.start("map-reduce", `{"model":"m","prompt":"p","items":["a","b","c"],"chunk":2}`), nobody)
		if got := fmt.Sprintf("%s, %d waived, %d swallowed", v.Status, len(v.Acceptance.Waived), v.Acceptance.SwallowedAll); got != want {
			t.Errorf("with a bad %s: %s, want %s", bad, got, want)
		}
	}
}

func TestMapReduceRefusesTwoItemsOfOneName(t *testing.T) {
	c := newCoordinator(t, nil, func(call) any { return []row{} })
	id := c.start("map-reduce", `{"model":"m","prompt":"p","items":["a","b"],"keys":["x","x"]}`)
	if v := c.end(id, nobody); v.Status != run.Failed || !strings.Contains(v.Error, "two items have the key x") {
		t.Errorf("%s: %s", v.Status, v.Error)
	}
}

// child is a workflow that a test adds.
func child(t *testing.T, body string) script.Program {
	t.Helper()
	p, err := script.BundleText("child.ts", `import { expect, generate, output, t } from "loopkeeper"; export default async function child(input: any) {`+body+`}`)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPartitionDealsRoundRobin, gives each run its share, and counts what each run covered and no more.
func TestPartitionDealsRoundRobin(t *testing.T) {
	own := map[string]script.Program{"search": child(t, `
		if (input.sites.includes("c")) throw new Error("no way in");
		if (input.sites.includes("b")) expect(["what nobody does"]);
		output("found", input.sites.map((site: string) => site + input.of));
		return input.sites.length;`)}
	c := newCoordinator(t, own, nil)
	id := c.start("partition", `{"workflow":"search","slices":3,"items":["a","b","c","d","e","f","g"],"into":"sites","input":{"of":"!"}}`)
	v := c.end(id, nobody)
	if v.Status != run.Incomplete || len(v.Children) != 3 {
		t.Fatalf("%s with %d children", v.Status, len(v.Children))
	}
	if a := v.Acceptance; a.Expected != 7 || a.Covered != 3 || a.Failed != 4 { // slice 1 only
		t.Errorf("the books say %+v", a)
	}
	var runs []struct {
		Slice int
		Items []string
		State string
	}
	c.output(id, "runs", &runs)
	if got, want := show(runs), `[{"Slice":1,"Items":["a","d","g"],"State":"completed"},{"Slice":2,"Items":["b","e"],"State":"incomplete"},{"Slice":3,"Items":["c","f"],"State":"failed"}]`; got != want {
		t.Errorf("runs %s\nwant %s", got, want)
	}
	var result []int
	if c.output(id, "result", &result); show(result) != "[3,2]" {
		t.Errorf("result %v", result)
	}
}

func TestPartitionOfFewerItemsThanSlices(t *testing.T) {
	c := newCoordinator(t, map[string]script.Program{"one": child(t, `return input.items;`)}, nil)
	id := c.start("partition", `{"workflow":"one","slices":9,"items":["a","b"]}`)
	if v := c.end(id, nobody); v.Status != run.Completed || len(v.Children) != 2 {
		t.Errorf("%s with %d children", v.Status, len(v.Children))
	}
	id = c.start("partition", `{"workflow":"no such","slices":2,"items":["a","b"]}`)
	if v := c.end(id, nobody); v.Status != run.Incomplete || v.Acceptance.Covered != 0 {
		t.Errorf("without its workflow it is %s, %+v", v.Status, v.Acceptance)
	}
}

// TestStartReturnsAtOnce, starts each name once under a key, and says which could not be started.
func TestStartReturnsAtOnce(t *testing.T) {
	letter := child(t, `const text = await generate({ model: "m", prompt: "Write to " + input.to + " " + input.tone }); output("letter", text);`)
	c := newCoordinator(t, map[string]script.Program{"letter": letter}, func(call) any { return "Dear friend" })
	c.staff.hold = make(chan struct{})
	const input = `{"workflow":"letter","inputs":[{"to":"Ann"},{"to":"Bob"}],"shared":{"tone":"friendly"},"names":["ann","bob"],"key":"may"}`
	id := c.start("start", input)
	v := c.end(id, nobody) // although no letter is written
	var first, second struct {
		Started []struct{ Name, Run string }
		Of      int
	}
	c.output(id, "result", &first)
	if v.Status != run.Completed || first.Of != 2 || len(first.Started) != 2 || first.Started[1].Name != "bob" {
		t.Fatalf("%s, %+v", v.Status, first)
	}
	again := c.start("start", input)
	c.end(again, nobody)
	if c.output(again, "result", &second); show(second) != show(first) {
		t.Errorf("the same key gave %+v, then %+v", first, second)
	}
	close(c.staff.hold)
	for _, s := range first.Started {
		if v := c.end(s.Run, nobody); v.Status != run.Completed || !slices.Equal(v.Outputs, []string{"letter"}) {
			t.Errorf("%s is %s with %v", s.Name, v.Status, v.Outputs)
		}
	}
	id = c.start("start", `{"workflow":"no such","inputs":[{}]}`)
	if v := c.end(id, nobody); v.Status != run.Incomplete {
		t.Errorf("a run that could not be started leaves it %s", v.Status)
	}
}

// TestUntilCountsBeforeItAsksAJudge, gives the reasons to the next round, and says when it was not reached.
func TestUntilCountsBeforeItAsksAJudge(t *testing.T) {
	texts := []string{"one two three four five", "one two three", "one two pump", "a pump"}
	round := 0
	labels := []string{}
	c := newCoordinator(t, nil, func(c call) any {
		if c.Kind == engine.CallEvaluate {
			labels = append(labels, c.Label)
			return judged(map[bool]string{true: "passed", false: "sent_back"}[c.Label == "judge round 4"], "it is dull")
		}
		if context := show(c.Request["context"]); round > 0 && !strings.Contains(context, []string{"", "it has 5 words, and may have 3", `it lacks \"pump\"`, "it is dull"}[round]) {
			t.Errorf("round %d was given %s", round+1, context)
		}
		round++
		return texts[round-1]
	})
	id := c.start("until", `{"model":"m","judge":"j","task":"A name","max_words":3,"contains":["pump"],"criteria":["it is lively"]}`)
	v := c.end(id, nobody)
	var end struct {
		Reached bool
		Rounds  int
		Reasons []string
	}
	c.output(id, "end", &end)
	if v.Status != run.Completed || !end.Reached || end.Rounds != 4 || !slices.Equal(labels, []string{"judge round 3", "judge round 4"}) {
		t.Errorf("%s, %+v, judged %v", v.Status, end, labels)
	}
	round, texts = 0, []string{"one two three four five", "too long again, as it was", "x", "x"}
	id = c.start("until", `{"model":"m","task":"A name","max_words":3,"rounds":2}`)
	v = c.end(id, nobody)
	if c.output(id, "end", &end); v.Status != run.Incomplete || end.Reached || end.Rounds != 2 || len(end.Reasons) != 1 {
		t.Errorf("%s, %+v", v.Status, end)
	}
}

func TestAskChoosesAndFillsIn(t *testing.T) {
	var schemas []string
	choices := []any{
		map[string]any{"workflow": "map", "input": map[string]any{"model": "m", "prompt": "Sum up.\n\n{{item}}", "files": []string{"@docs/none.md"}}},
		map[string]any{"workflow": "map", "input": map[string]any{"model": "huge", "prompt": "Sum up.\n\n{{item}}"}},
		map[string]any{"workflow": "map", "input": map[string]any{"model": "m", "prompt": "Sum up.\n\n{{item}}", "files": []string{"@docs/*.md"}}},
	}
	var said [][]string
	c := newCoordinator(t, nil, func(c call) any {
		said = append(said, c.Said)
		schemas = append(schemas, show(c.Request["schema"]))
		return choices[len(said)-1]
	})
	var known []any
	for _, name := range []string{"map", "plan"} {
		about := described(t, name)
		known = append(known, map[string]any{"name": name, "about": about.Description, "params": json.RawMessage(about.ParamsSchema)})
	}
	id := c.start("ask", show(map[string]any{"request": "Sum up my documents", "model": "m", "models": []string{"m", "j"}, "files": []string{"docs/a.md", "docs/b.md"}, "workflows": known}))
	if v := c.end(id, nobody); v.Status != run.Completed {
		t.Fatalf("%s: %s", v.Status, v.Error)
	}
	var got any
	if c.output(id, "result", &got); show(got) != show(choices[2]) {
		t.Errorf("chose %s", show(got))
	}
	for i, want := range []string{"there is no file docs/none.md", "there is no model huge", ""} {
		if i < 2 && !strings.Contains(strings.Join(said[i+1], "; "), want) {
			t.Errorf("try %d was told %q", i+2, said[i+1])
		}
	}
	if !strings.Contains(strings.Join(said[2], "; "), "map takes exactly one of items, files, lines") {
		t.Errorf("the third try was told %q", said[2])
	}
	schema := compiled(t, json.RawMessage(schemas[0]))
	if err := schema.Validate(value(t, show(choices[2]))); err != nil {
		t.Errorf("the schema refuses what was chosen: %v", err)
	}
	for _, bad := range []string{`{"workflow":"ask","input":{}}`, `{"workflow":"plan","input":{"model":"m"}}`, `{"workflow":"map","input":{"model":"m","prompt":"p","itmes":[]}}`, `{"workflow":"plan","input":{"model":"huge","planner":"m","goal":"g"}}`} {
		if schema.Validate(value(t, bad)) == nil {
			t.Errorf("the schema accepts %s", bad)
		}
	}
}

// TestMapReduceOpensFilesAndLines: an item is a file's text or a line's value, and its key is what was submitted.
func TestMapReduceOpensFilesAndLines(t *testing.T) {
	var seen []string
	c := newCoordinator(t, nil, func(c call) any {
		seen = append(seen, rows(c)...)
		return []row{{1, "x"}, {2, "y"}}
	})
	store := func(name, text string) string {
		a, err := c.store.PutArtifact(t.Context(), name, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return show(obj{"ref": a.SHA256, "name": name, "bytes": len(text)})
	}
	files := c.start("map-reduce", `{"model":"m","prompt":"p","files":[`+store("a.md", "first")+`,`+store("b.md", "second")+`]}`, run.Submitted{Key: "a.md"}, run.Submitted{Key: "b.md"})
	lines := store("list.jsonl", "\"third\"\n{\"of\":4}\n")
	for _, id := range []string{files, c.start("map-reduce", `{"model":"m","prompt":"p","lines":{"lines":`+lines+`}}`, run.Submitted{Key: "list.jsonl:1"}, run.Submitted{Key: "list.jsonl:2"})} {
		if v := c.end(id, nobody); v.Status != run.Completed || v.Acceptance.Expected != 2 || v.Acceptance.Covered != 2 {
			t.Errorf("%s %s: %+v", v.Status, v.Error, v.Acceptance)
		}
	}
	slices.Sort(seen)
	if want := []string{"first", "map[of:4]", "second", "third"}; !slices.Equal(seen, want) {
		t.Errorf("the model saw %q", seen)
	}
}
