package run

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// The transcripts are commands in and events out, as a person would read them in the ledger.
var stories = merged(firstStories, waitStories, toolStories, phaseStories, limitStories, acceptStories, judgeStories, ladderStories)

var firstStories = map[string]func(*tape){
	"batch-completes": func(tp *tape) {
		tp.ask(KindBatch, `{"items":["a",{"ref":"ff","name":"b.md","bytes":3}],"model":"small","prompt":"{{item}}","schema":{}}`)
		a, b := tp.place(0, 0, "n1"), tp.place(0, 1, "n2")
		tp.do(Begin{a})
		tp.succeed(b, `{"x":2}`)
		tp.succeed(a, `{"x":1}`)
		tp.ask(KindOutput, `{"name":"result","sources":[0],"value":[1,2]}`)
		tp.returns()
		tp.want(Completed)
	},
	"judged-and-sent-back": func(tp *tape) {
		tp.ask(KindGenerate, `{"evaluate":{"criteria":["short"],"model":"judge"},"model":"small","prompt":"write"}`)
		tp.succeed(tp.place(0, 0, "n1"), `"long"`)
		tp.succeed(tp.place(0, 0, "n2"), notMet("short"))
		tp.succeed(tp.place(0, 0, "n1"), `"short"`)
		tp.succeed(tp.place(0, 0, "n2"), met("short"))
		tp.returns()
		tp.want(Completed)
	},
	"retry-then-fail": func(tp *tape) {
		tp.ask(KindGenerate, `{"model":"small","prompt":"write","retry":{"attempts":2}}`)
		tp.fail(tp.place(0, 0, "n1"), "empty_turn", Changed)
		tp.fail(tp.place(0, 0, "n1"), "schema_violation", Changed)
		tp.returns()
		tp.want(Incomplete)
	},
	"node-lost": func(tp *tape) {
		tp.ask(KindGenerate, `{"model":"small","prompt":"write","retry":{"attempts":1}}`)
		lost := tp.place(0, 0, "n1")
		tp.fail(lost, KindNodeLost, OtherNode)
		second := tp.place(0, 0, "n2")
		_, _ = tp.try(Finish{AttemptID: lost, Result: Content{Value: []byte(`"late"`)}}) // refused: it is not in flight
		tp.do(Late{Finish{AttemptID: lost, Evidence: Evidence{Node: "n1"}, Result: Content{Value: []byte(`"late"`)}}})
		tp.succeed(second, `"in time"`)
		tp.returns()
		tp.want(Completed)
	},
	"cancel": func(tp *tape) {
		tp.ask(KindBatch, `{"items":["a","b"],"model":"small","prompt":"{{item}}"}`)
		id := tp.place(0, 0, "n1")
		tp.do(Begin{id})
		tp.do(Cancel{Reason: "changed my mind"})
		_, _ = tp.try(Finish{AttemptID: id, Result: Content{Value: []byte(`1`)}}) // refused
		tp.do(Late{Finish{AttemptID: id, Evidence: Evidence{Node: "n1", Raw: "ee"}}})
		tp.want(Cancelled)
	},
	"script-throws": func(tp *tape) {
		tp.ask(KindGenerate, `{"model":"small","prompt":"write"}`)
		tp.do(Yield{Requests: []Request{{Pos: 1, Kind: KindLog, Note: true, Body: []byte(`{"level":"warn","text":"oh"}`)}},
			End: &ScriptEnd{Error: &Error{Kind: "threw", Message: "Error: no", File: "review.ts", Line: 12, Column: 7}}})
		tp.want(Failed)
	},
	"limit-reached": func(tp *tape) {
		tp.ask(KindBatch, `{"items":["a","b"],"model":"small","prompt":"{{item}}"}`)
		id := tp.place(0, 0, "n1")
		tp.do(Expire{})
		tp.want(Running)
		_, _ = tp.try(Place{AttemptID: AttemptID{Pos: 0, Item: 1, Phase: Work, Number: 1}, Node: "n1"}) // refused: nothing new
		tp.succeed(id, `1`)
		tp.want(TimedOut)
	},
	"diverged": func(tp *tape) {
		tp.ask(KindGenerate, `{"model":"small","prompt":"write"}`)
		tp.do(Diverge{Divergence{Pos: 0, Expected: "generate {}", Got: "log {}"}})
		tp.want(Diverged)
	},
	"read-and-bad-request": func(tp *tape) {
		tp.ask(KindRead, `{"ref":"ff"}`)
		tp.do(Answer{Pos: 0, Result: Content{Ref: "ff", Text: true}})
		tp.ask(KindGenerate, `{"prompt":"no model"}`)
		tp.ask("teleport", `{}`)
		tp.ask(KindBatch, `{"items":[],"model":"small","prompt":"x"}`)
		tp.ask(KindCollected, `{"failures":[{"key":"k","message":"m"}],"label":"each"}`)
		tp.returns()
		tp.want(Incomplete)
	},
	"cannot-fit": func(tp *tape) {
		tp.ask(KindGenerate, `{"label":"big one","model":"huge","prompt":"x"}`)
		tp.do(Reject{Pos: 0, Item: 0, Failure: Failure{Kind: "cannot_fit", Message: "needs 80 GB", Advice: Never}})
		tp.returns()
		tp.want(Incomplete)
	},
}

func merged(all ...map[string]func(*tape)) map[string]func(*tape) {
	out := map[string]func(*tape){}
	for _, m := range all {
		maps.Copy(out, m)
	}
	return out
}

// pins are what the runs of some stories have pinned.
var pins = map[string]Created{
	"limit-reached":                 {Limits: Limits{ActiveSeconds: 2}},
	"spawn-too-deep":                {Limits: Limits{SpawnDepth: 1}, Parent: &Parent{Run: "aaaa", Pos: 3, Depth: 1}},
	"tokens-exhausted":              {Limits: Limits{Tokens: 30}},
	"tokens-exhausted-with-a-child": {Limits: Limits{Tokens: 30}},
	"calls-exhausted":               {Limits: Limits{Calls: 2}},
	"time-out-with-a-child":         {Limits: Limits{ActiveSeconds: 2}},
	"result-too-large":              {Limits: Limits{ArtifactBytes: 20}},
	"time-out-while-waiting":        {Limits: Limits{ActiveSeconds: 2}},
	"submitted-and-missing":         {Submitted: []Submitted{{Key: "a.md"}, {Key: "b.md"}, {Key: "c.md"}}},
	"chunks-and-lines":              {Submitted: []Submitted{{Key: "data.jsonl", Ref: "dd", Lines: 4}, {Key: "x.md"}}},
	"waived-and-made-good":          {Submitted: []Submitted{{Key: "a.md"}, {Key: "b.md"}, {Key: "c.md"}, {Key: "d.md"}}},
	"written-and-too-large":         {Limits: Limits{ArtifactBytes: 20}},
	"passed-by-two":                 {Roles: benchRoles, Judges: measured},
	"third-judge":                   {Roles: benchRoles},
	"judged-in-a-batch":             {Roles: benchRoles},
	"next-model-on-no-machine":      {Roles: benchRoles},
	"reused":                        {Base: &Base{Run: "aaaa", Failed: true}},
}

// queued are the stories of runs that have no script host yet.
var queued = []string{"suspended-in-the-queue", "cancelled-in-the-queue"}

// told plays a story.
func told(t testing.TB, name string, story func(*tape)) *tape {
	tp := created(t, pins[name])
	if !slices.Contains(queued, name) {
		tp.do(Start{})
	}
	story(tp)
	return tp
}

func TestTranscripts(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			tp := told(t, name, story)
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(tp.log.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(want) != tp.log.String() {
				t.Errorf("the transcript changed; if that is right, run with -update.\ngot:\n%s\nwant:\n%s", tp.log.String(), want)
			}
			equalStates(t, tp.s, refold(t, tp.events))
		})
	}
}

var recorded = regexp.MustCompile(`(?m)^  (\d+) ([a-z]+\.[a-z_]+) (.*)$`)

// TestTranscriptsDecode folds the events as they lie in testdata: what was once written is read for ever.
func TestTranscriptsDecode(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	first, err2 := filepath.Glob("testdata/first/*.txt") // as the first version wrote them
	if err != nil || err2 != nil || len(files) < len(stories) || len(first) == 0 {
		t.Fatalf("%d transcripts, %v, %v", len(files), err, err2)
	}
	files = append(files, first...)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s := &State{}
		for _, m := range recorded.FindAllSubmatch(text, -1) {
			seq, _ := strconv.ParseInt(string(m[1]), 10, 64)
			e, err := Decode(seq, birth, string(m[2]), m[3])
			if err == nil {
				err = Apply(s, e)
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		if !s.Status.Ended() {
			t.Errorf("%s: the run is %s at the end", file, s.Status)
		}
	}
}
