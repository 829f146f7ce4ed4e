package engine

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
)

func TestIndexLines(t *testing.T) {
	long := `"` + strings.Repeat("x", 200_000) + `"`
	over := `"` + strings.Repeat("x", LineLimit) + `"`
	tests := []struct {
		name, text string
		offsets    []uint64
		bad        string
	}{
		{"nothing", "", []uint64{0}, ""},
		{"one", `"a"` + "\n", []uint64{0, 4}, ""},
		{"no line break at the end", "1\n22", []uint64{0, 2, 4}, ""},
		{"line breaks of Windows", "1\r\n{}\r\n", []uint64{0, 3, 7}, ""},
		{"a long line", "1\n" + long + "\n2\n", []uint64{0, 2, 200_005, 200_007}, ""},
		{"no JSON", "1\nhello\n\n{\"a\":1}\n{\"a\":\n", []uint64{0, 2, 8, 9, 17, 23}, "2: invalid character 'h'; 3: it is empty; 5: unexpected end of JSON input; "},
		{"two values", "1 2\n", []uint64{0, 4}, "1: invalid character '2' after top-level value; "},
		{"too long", "1\n" + over + "\n2\n", []uint64{0, 2, LineLimit + 5, LineLimit + 7}, "2: it has more than 16 MiB; "},
	}
	for _, tt := range tests {
		var index bytes.Buffer
		bad := ""
		n, err := IndexLines(strings.NewReader(tt.text), &index, func(line int, why string) {
			why, _, _ = strings.Cut(why, ", the most")
			why, _, _ = strings.Cut(why, " looking for")
			bad += fmt.Sprintf("%d: %s; ", line, why)
		})
		got := make([]uint64, index.Len()/8)
		_ = binary.Read(&index, binary.BigEndian, got)
		if err != nil || n != len(tt.offsets)-1 || !slices.Equal(got, tt.offsets) || bad != tt.bad {
			t.Errorf("%s: %d lines at %v, bad: %s, %v", tt.name, n, got, bad, err)
		}
	}
}

// The index of many lines is made in the memory of one.
func TestAnIndexIsMadeInConstantMemory(t *testing.T) {
	var at int64
	before := heap()
	lines := &repeated{line: manyWords, left: 300_000, last: func() { at = heap() }}
	if n, err := IndexLines(lines, io.Discard, func(int, string) {}); n != 300_000 || err != nil {
		t.Fatal(n, err)
	}
	if at-before > 1<<20 {
		t.Errorf("%d bytes are held at the last of 300,000 lines", at-before)
	}
}

var manyWords = []byte(`{"key":"some-key","text":"` + strings.Repeat("word ", 20) + "\"}\n")

// repeated reads as one line, many times over.
type repeated struct {
	line     []byte
	at, left int
	last     func() // is called before the last line
}

func (r *repeated) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if r.left == 0 {
			return n, io.EOF
		}
		if r.left == 1 && r.at == 0 && r.last != nil {
			r.last()
		}
		k := copy(p[n:], r.line[r.at:])
		n += k
		if r.at += k; r.at == len(r.line) {
			r.at, r.left = 0, r.left-1
		}
	}
	return n, nil
}

// overLinesScript runs a batch over lines and reads its result by pages.
const overLinesScript = `import { batch, lines, output, pages, t } from "loopkeeper";
const Answer = t.object({ of: t.string() });
export default async function flow(input: any) {
  const made = await batch({ items: lines(input), model: "small:8b", prompt: "{{item}}", schema: Answer });
  let seen = 0, failed = 0, last: any = null;
  const keys = [];
  for await (const page of pages(made)) for (const item of page) {
    if (item.status === "failed") { failed++; keys.push(item.key); } else { seen++; last = item.value; }
  }
  return { seen, failed, keys, last, succeeded: made.succeeded, total: made.total, coverage: made.coverage };
}`

func overLinesProgram(t testing.TB) script.Program {
	t.Helper()
	p, err := script.BundleText("flow.ts", overLinesScript)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (r *rig) lines(text string) map[string]any {
	r.t.Helper()
	art, err := r.store.PutArtifact(r.t.Context(), "data.jsonl", strings.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	return map[string]any{"ref": art.SHA256, "name": "data.jsonl", "bytes": art.Size}
}

// ofLine answers with the place of the line that a call is about.
func ofLine(a Attempt) Result {
	v, _ := json.Marshal(map[string]string{"of": fmt.Sprintf("line %d", a.Line.At)})
	return Result{Value: v, Raw: string(v), Report: Report{Model: a.Model, Digest: a.Digest, PromptTokens: 20, OutputTokens: 10, Simulated: true}}
}

// TestABatchOverLines is row 15 of research/durability.md §2 (batches that have to be cut up artificially) and row 25 (partial results that do not
// say so). Bad lines fail by their number before any call, the result comes by pages, in input order, and a restart in the
// middle changes nothing.
func TestABatchOverLines(t *testing.T) {
	p := overLinesProgram(t)
	const n = 1100
	var text strings.Builder
	for i := range n {
		if i == 6 || i == 1003 {
			text.WriteString("not JSON\n")
			continue
		}
		fmt.Fprintf(&text, "{\"n\":%d}\n", i)
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(4)
		f.widen(50)
		f.takes = func(Attempt) time.Duration { return time.Second }
		f.answer = ofLine
		r := newRig(t, f, Options{})
		id := r.submit(p, r.lines(text.String()))
		time.Sleep(6500 * time.Millisecond) // in the third of 6 rounds
		r.e.Stop()
		r.start()
		v := r.wait(id)
		want := `{"coverage":0.9981818181818182,"failed":2,"keys":["data.jsonl:7","data.jsonl:1004"],"last":{"of":"line 1099"},"seen":1098,"succeeded":1098,"total":1100}`
		if got := r.output(id, "result"); v.Status != run.Incomplete || got != want || v.Calls != n-2 {
			t.Errorf("%s after %d calls: %.500s %s", v.Status, v.Calls, got, v.Error)
		}
		if len(v.Failures) != 1 || len(v.Failures[0].Items) != 2 || !strings.HasPrefix(v.Failures[0].Message, "line 1004 of data.jsonl is not JSON") {
			t.Errorf("%.500v", v.Failures)
		}
		page, err := r.e.Items(t.Context(), id, 0, 5, 3)
		if err != nil || len(page.Items) != 3 || page.Total != n || string(page.Items[0].Value) != `{"of":"line 5"}` || page.Items[1].FailureKind != run.KindBadRequest || page.Items[2].Key != "data.jsonl:8" {
			t.Errorf("%.500v, %v", page, err)
		}
		requested := 0
		for _, ev := range r.events(id) {
			if q, ok := ev.Data.(*run.Requested); ok && q.Lines != nil {
				requested++
				index, err := r.store.Store.ReadArtifactAt(t.Context(), q.Lines.Index, 0, 1<<20)
				if err != nil || q.Lines.Count != n || len(index) != 8*(n+1) || binary.BigEndian.Uint64(index[8*n:]) != uint64(text.Len()) {
					t.Errorf("%+v with an index of %d bytes, %v", q.Lines, len(index), err)
				}
			}
		}
		if again, err := r.e.Replay(t.Context(), id); requested != 1 || err != nil || again.Divergence != nil {
			t.Errorf("%d batches; the replay: %+v, %v", requested, again, err)
		}
	})
}

// A check is given its line, of a long one where it is; one that sees the line decides the same after a restart and in a replay.
func TestACheckOverLinesSeesItsLine(t *testing.T) {
	p, err := script.BundleText("flow.ts", `import { batch, lines, log, t } from "loopkeeper";
export default async function flow(input: any) {
  const long: string[] = [];
  let sent = 0;
  const made = await batch({ items: lines(input), model: "small:8b", prompt: "{{item}}", schema: t.object({ of: t.string() }),
    check: (value, line: any, i) => {
      if (line.line) long.push(line.name + " " + line.ref.length + " " + line.bytes + " " + line.line);
      else if (value.of !== "line " + line.n || line.n !== i) return "line " + i + " is " + JSON.stringify(line);
      if (i % 10 !== 3 || sent > 4) return true;
      sent++;
      return "once more";
    } });
  return { made: made.succeeded, long, sent };
}`)
	if err != nil {
		t.Fatal(err)
	}
	const n = 60
	long := `"` + strings.Repeat("x", mostAbout-2) + `"`
	var text strings.Builder
	for i := range n {
		if i == 40 {
			text.WriteString(long + "\n")
			continue
		}
		fmt.Fprintf(&text, "{\"n\": %d}\r\n", i)
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFarm(1)
		f.widen(10)
		f.takes = func(Attempt) time.Duration { return time.Second }
		f.answer = ofLine
		r := newRig(t, f, Options{})
		id := r.submit(p, r.lines(text.String()))
		for range 3 {
			time.Sleep(1500 * time.Millisecond)
			r.e.Stop()
			r.start()
		}
		v := r.wait(id)
		want := fmt.Sprintf(`{"long":["data.jsonl 64 %d 41"],"made":60,"sent":5}`, mostAbout+1)
		if got := r.output(id, "result"); v.Status != run.Completed || got != want || v.Calls != n+5 {
			t.Errorf("%s after %d calls: %.500s %s %.500v", v.Status, v.Calls, got, v.Error, v.Failures)
		}
		if again, err := r.e.Replay(t.Context(), id); err != nil || again.Divergence != nil {
			t.Errorf("the replay: %+v, %v", again, err)
		}
	})
}

func TestABatchOverLinesThatAreNotThere(t *testing.T) {
	p := overLinesProgram(t)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		id := r.submit(p, map[string]any{"ref": strings.Repeat("0", 64), "name": "gone.jsonl", "bytes": 4})
		if v := r.wait(id); v.Status != run.Failed || !strings.Contains(v.Error, "the lines gone.jsonl of the items are not there") || !strings.Contains(v.Error, strings.Repeat("0", 12)) || v.Calls != 0 {
			t.Errorf("%s: %s", v.Status, v.Error)
		}
		if v := r.wait(r.submit(p, r.lines(""))); v.Status != run.Completed || v.Calls != 0 {
			t.Errorf("of no lines: %s: %s", v.Status, v.Error)
		}
	})
}

// widen gives every machine so many slots, and the memory for them.
func (f *farm) widen(slots int) {
	for _, m := range f.nodes {
		m.Slots = slots
		m.Pools[0].Total.N, m.Pools[0].Free.N = 10_000*gib, 9_999*gib
	}
}

// quick answers every call at once, and keeps nothing.
type quick struct {
	*farm
	sent   int
	bytes  int // of each result
	during func(sent int)
}

func (q *quick) Send(a Attempt) {
	r := ofLine(a)
	r.Key, r.Value = a.Key, append(append(json.RawMessage(`{"of":"`), bytes.Repeat([]byte("x"), q.bytes)...), `"}`...)
	q.sent++
	if q.during != nil {
		q.during(q.sent)
	}
	q.sink.Finished(r)
}

// largeBatch runs a batch over n lines with results of so many bytes on four machines with so many slots, and returns how much live heap it took at most, in bytes, as looked at ten times.
func largeBatch(t testing.TB, store ledger.Store, p script.Program, n, size, slots int) (most int64) {
	t.Helper()
	art, err := store.PutArtifact(t.Context(), "data.jsonl", &repeated{line: manyWords, left: n})
	if err != nil {
		t.Fatal(err)
	}
	f := &quick{farm: newFarm(4), bytes: size}
	f.widen(slots)
	e := New(Options{Store: store, Host: script.NewHost(script.Limits{CPU: time.Hour})})
	f.sink = e
	if err := e.Start(t.Context(), f, f); err != nil {
		t.Fatal(err)
	}
	defer func() { e.Stop(); f.wg.Wait() }()
	before := heap()
	f.during = func(sent int) {
		if sent%(n/10) == 0 {
			most = max(most, heap()-before)
		}
	}
	id, _, err := e.Submit(t.Context(), Submission{Workflow: "flow", Program: p, Input: []byte(fmt.Sprintf(`{"bytes":%d,"name":"data.jsonl","ref":%q}`, art.Size, art.SHA256))})
	if err != nil {
		t.Fatal(err)
	}
	views, err := e.Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var last View
	for v := range views {
		last = v
	}
	if last.Status != run.Completed || last.Items.Succeeded != n {
		t.Fatalf("%s: %s, %+v", last.Status, last.Error, last.Items)
	}
	return most
}

// A batch over lines keeps neither lines nor results: of 8,000 bytes for each, its items and all that is constant are a fraction.
func TestALargeBatchIsSmallInMemory(t *testing.T) {
	store, err := ledger.Open(t.Context(), ledger.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	const n = 3000
	p, err := script.BundleText("flow.ts", `import { batch, lines, t } from "loopkeeper";
export default async (input: any) => (await batch({ items: lines(input), model: "small:8b", prompt: "{{item}}", schema: t.object({ of: t.string() }) })).succeeded;`)
	if err != nil {
		t.Fatal(err)
	}
	if each := largeBatch(t, store, p, n, 8000, 10) / n; each > 900 {
		t.Errorf("%d bytes of live heap for each item", each)
	}
}

func BenchmarkLargeBatch(b *testing.B) {
	store, err := ledger.Open(b.Context(), ledger.Options{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	p := overLinesProgram(b)
	for b.Loop() {
		const n = 100_000
		most := largeBatch(b, store, p, n, 20, 200)
		b.ReportMetric(float64(most)/n, "B/item")
		b.ReportMetric(float64(most)/(1<<20), "MiB")
	}
}
