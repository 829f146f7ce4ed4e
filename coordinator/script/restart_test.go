package script

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// journal is what a ledger keeps of a script: what it was given, and what it did each time, as bytes.
type journal struct {
	start  Start
	given  []Delivery
	yields [][]byte // the first is the start's
}

// rebuilt starts the script again and gives it all that it was given, with the keys of every object in another order. It
// fails the test where the script does not do the very same.
func (j *journal) rebuilt(t *testing.T, host Host, rng *rand.Rand) Session {
	t.Helper()
	again := j.start
	again.Input = shuffled(t, rng, again.Input)
	s, y, err := host.Start(context.Background(), again)
	if err != nil {
		t.Fatalf("start again: %v", err)
	}
	j.same(t, 0, y)
	given := slices.Clone(j.given)
	for i := range given {
		given[i].Value = shuffled(t, rng, given[i].Value)
	}
	yields, err := s.DeliverAll(context.Background(), given)
	if err != nil || len(yields) != len(given) {
		t.Fatalf("the replay of %d deliveries gave %d yields, %v", len(given), len(yields), err)
	}
	for i, y := range yields {
		j.same(t, i+1, y)
	}
	return s
}

func (j *journal) same(t *testing.T, i int, y Yield) {
	t.Helper()
	if got := yieldText(t, y); !bytes.Equal(got, j.yields[i]) {
		t.Fatalf("after a restart yield %d is\n%s\nwant\n%s", i, got, j.yields[i])
	}
}

func yieldText(t *testing.T, y Yield) []byte {
	t.Helper()
	text, err := marshal(y)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// shuffled writes a value with the keys of its objects in a random order.
func shuffled(t *testing.T, rng *rand.Rand, value json.RawMessage) json.RawMessage {
	t.Helper()
	if len(value) == 0 {
		return value
	}
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	return appendShuffled(t, rng, nil, v)
}

func appendShuffled(t *testing.T, rng *rand.Rand, out []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		out = append(out, '{')
		for i, key := range keys {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(appendString(out, key), ':')
			out = appendShuffled(t, rng, out, v[key])
		}
		return append(out, '}')
	case []any:
		out = append(out, '[')
		for i, element := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendShuffled(t, rng, out, element)
		}
		return append(out, ']')
	default:
		text, err := marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return append(out, text...)
	}
}

// played runs a script to its end in a world made from a seed, with restarts between any two deliveries. It
// returns how many there were, and the kinds of what the script asked for.
func played(t *testing.T, host Host, p Program, input string, seed uint64, restarts int) (done int, kinds map[string]bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	w := &world{rng: rng, open: map[int]Request{}, schemas: map[int]any{}, kinds: map[string]bool{}}
	j := &journal{start: Start{Program: p, Seed: int64(seed), Clock: anchor, Input: json.RawMessage(input)}}
	s, y, err := host.Start(context.Background(), j.start)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { s.Close() }()
	for clock := anchor; ; {
		j.yields = append(j.yields, yieldText(t, y))
		w.heard(y)
		if y.End != nil {
			break
		}
		if done < restarts && rng.IntN(2) == 0 {
			s.Close()
			s = j.rebuilt(t, host, rng)
			done++
		}
		clock = clock.Add(time.Duration(rng.IntN(3600)) * time.Second)
		d := w.next()
		d.Time = clock
		if y, err = s.Deliver(context.Background(), d); err != nil {
			t.Fatalf("deliver %+v: %v", d, err)
		}
		j.given = append(j.given, d)
	}
	if y.End.Failure != nil {
		t.Fatalf("seed %d: the script ended with %v\n%s", seed, y.End.Failure, y.End.Failure.Stack)
	}
	t.Logf("seed %d: %d deliveries, %d restarts", seed, len(j.given), done)
	return done, w.kinds
}

// The bug of the loomcycle story: a script that makes texts of its objects diverged when a restart gave it their keys in
// another order, and its clock and chance were drawn anew.
func TestAThousandRestartsAtRandomPointsChangeNothing(t *testing.T) {
	wanted := 250
	switch {
	case *full:
		wanted = 1000
	case testing.Short():
		wanted = 50
	}
	p, err := Bundle("testdata/everything.ts")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for seed := uint64(1); wanted > 0; seed++ {
		done, kinds := played(t, NewHost(Limits{}), p, everythingInput, seed, wanted)
		wanted -= done
		for kind := range kinds {
			seen[kind] = true
		}
	}
	for _, kind := range strings.Fields("generate batch plan evaluate embed read sleep approve question tool spawn page phase " +
		"output collected log expect cover waive fallback until check") {
		if !seen[kind] && !testing.Short() {
			t.Errorf("no run had a %s", kind)
		}
	}
}

func TestAChildIsRebuiltAsItWas(t *testing.T) {
	p, err := Bundle("testdata/everything.ts")
	if err != nil {
		t.Fatal(err)
	}
	played(t, hosts(Limits{})["child"], p, everythingInput, 1, 5)
}

// The other bug of that story: time that a run spent parked in a fan-out counted, and the line that came next was blamed.
func TestTimeParkedInAFanOutIsNoTimeOut(t *testing.T) {
	p := bundled(t, `import { each, sleep, approve } from "loopkeeper";
export default async () => {
  const all = await each(Array.from({ length: 32 }, (_, i) => i), async (i) => {
    if (i % 4 === 0) await approve({ title: "Go on with " + i });
    await sleep({ seconds: 600, label: "parked " + i });
    return new Date().toISOString();
  }, { concurrency: 32 });
  return all.values;
}`)
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(1, 1))
		host := NewHost(Limits{CPU: time.Minute})
		j := &journal{start: Start{Program: p, Clock: time.Now()}}
		s, y, err := host.Start(context.Background(), j.start)
		for open := []int(nil); ; {
			if err != nil {
				t.Fatal(err)
			}
			j.yields = append(j.yields, yieldText(t, y))
			if y.End != nil {
				break
			}
			for _, r := range y.Requests {
				open = append(open, r.Pos)
			}
			if err := s.Close(); err != nil { // it holds nothing while it waits
				t.Fatal(err)
			}
			time.Sleep(10 * time.Minute)
			s = j.rebuilt(t, host, rng)
			d := Delivery{Pos: open[0], Time: time.Now(), Value: json.RawMessage(`{"by":"ann","comment":"","outcome":"approved","timed_out":false}`)}
			j.given, open = append(j.given, d), open[1:]
			y, err = s.Deliver(context.Background(), d)
		}
		s.Close()
		if y.End.Failure != nil {
			t.Fatalf("the parked script ended with %v", y.End.Failure)
		}
		if waited := time.Since(j.start.Clock); waited < 32*10*time.Minute {
			t.Errorf("only %v passed", waited)
		}
	})
}

func TestEverythingUsesEveryExport(t *testing.T) {
	index, err := os.ReadFile("lib/index.ts")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("testdata/everything.ts")
	if err != nil {
		t.Fatal(err)
	}
	_, names, _ := strings.Cut(string(text), "import {")
	imports, _, _ := strings.Cut(names, "}")
	imported := map[string]bool{}
	for name := range strings.SplitSeq(imports, ",") {
		imported[strings.TrimSpace(name)] = true
	}
	for line := range strings.Lines(string(index)) {
		_, names, _ := strings.Cut(line, "export {")
		names, _, _ = strings.Cut(names, "}")
		for name := range strings.SplitSeq(names, ",") {
			if name = strings.TrimSpace(name); name != "" && !imported[name] {
				t.Errorf("testdata/everything.ts does not use %s", name)
			}
		}
	}
}

const everythingInput = `{"files":[{"ref":"aa","name":"a.md","bytes":1},{"name":"b.md","bytes":2,"ref":"bb"},{"bytes":3,"ref":"cc","name":"c.md"}],` +
	`"settings":{"zeta":1,"alpha":{"b":[1,{"y":1,"x":2}],"a":1.5e3},"10":"ten","9":"nine","é":"e","😀":null},"data":{"ref":"dd","name":"d.jsonl","bytes":9}}`
