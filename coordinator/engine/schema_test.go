package engine

import (
	"strings"
	"testing"
	"testing/synctest"
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
