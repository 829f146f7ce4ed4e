package engine

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A step whose schema cannot be used fails where the script asks for it: nothing is sent to a machine, and no person is asked.
func TestASchemaThatCannotBeUsedIsRefusedWhereItIsAsked(t *testing.T) {
	p := program(t, `const said = [];
for (const schema of input.schemas) {
  try { await generate({ model: "small:8b", prompt: "p", schema }); said.push("generate ok"); } catch (e) { said.push(e.kind + " " + e.message); }
  try { const b = await batch({ model: "small:8b", prompt: "p", items: [1, 2], schema }); said.push("batch " + b.failed); } catch (e) { said.push(e.kind + " " + e.message); }
}
return said;`)
	bad := []any{
		map[string]any{"type": "object", "properties": map[string]any{"age": map[string]any{"type": "integer", "minimum": 10, "maximum": 2}}},
		map[string]any{"type": "string", "pattern": "^(?!a)b$"},
		map[string]any{"$ref": "https://example.com/s.json"},
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		id := r.submit(p, map[string]any{"schemas": bad})
		r.wait(id)
		said := r.output(id, "result")
		for _, want := range []string{
			"bad_request generate: schema at /properties/age/minimum: minimum 10 is above maximum 2; lower minimum or raise maximum",
			"batch: schema at /properties/age/minimum:", "schema at /pattern: ", "look-around", "schema at /$ref: ", "#/$defs/NAME",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("nothing says %q: %s", want, said)
			}
		}
		if strings.Contains(said, " ok") || len(r.farm.sends) > 0 {
			t.Errorf("%d calls were sent: %s", len(r.farm.sends), said)
		}
	})
}

// The answer that a question gives itself when nobody does is held to its schema when it is asked, not when the time is over.
func TestTheAnswerOfATimeOutFitsTheSchema(t *testing.T) {
	p := flow(t, `const said: any[] = [];
for (const on_timeout of ["few", 0, null, 2]) {
  try { said.push(await question({ text: "how many?", schema: t.integer({ minimum: 1 }), timeout_seconds: 60, on_timeout })); } catch (e: any) { said.push(e.kind + " " + e.message); }
}
return said;`)
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, newFarm(1), Options{})
		began := time.Now()
		id := r.submit(p, nil)
		r.wait(id)
		var said []any
		if err := json.Unmarshal([]byte(r.output(id, "result")), &said); err != nil || len(said) != 4 {
			t.Fatal(said, err)
		}
		for i, why := range []string{"got string, want integer", "minimum: got 0, want 1", "got null, want integer"} {
			if got := fmt.Sprint(said[i]); !strings.HasPrefix(got, "bad_request question: on_timeout does not fit: ") || !strings.Contains(got, why) {
				t.Errorf("%s, want %s", got, why)
			}
		}
		if last := fmt.Sprint(said[3]); last != "map[answer:2 by:time-out timed_out:true]" {
			t.Errorf("what fits gives %s", last)
		}
		if took := time.Since(began); took >= 2*time.Minute {
			t.Errorf("it took %s: more than one question waited", took)
		}
	})
}
