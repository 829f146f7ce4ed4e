package structure

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// A server that sorts asks for the keys by name: required ones first, then the others. The cases say what the model writes
// then, in that order, and what becomes of it.
func TestOrdered(t *testing.T) {
	for name, c := range map[string]struct{ schema, answer, want string }{
		"an object": {`{"type":"object","properties":{"z":{"type":"boolean"},"m":{"type":"boolean"},"a":{"type":"boolean"}},"required":["z","m","a"]}`,
			`{"a_z":true,"b_m":false,"c_a":true}`, `{"z":true,"m":false,"a":true}`},
		"one that is sorted": {`{"type":"object","properties":{"a_x":{"type":"boolean"},"b_y":{"type":"boolean"}},"required":["a_x","b_y"]}`,
			`{"a_x":true,"b_y":false}`, `{"a_x":true,"b_y":false}`},
		"nested": {`{"type":"object","properties":{"why":{"type":"string"},"at":{"type":"object","properties":{"line":{"type":"integer"},"column":{"type":"integer"}},"required":["line","column"]}},"required":["why","at"]}`,
			`{"a_why":"x","b_at":{"a_line":1,"b_column":2}}`, `{"why":"x","at":{"line":1,"column":2}}`},
		"within an array": {`{"type":"array","items":{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"integer"}},"required":["b","a"]}}`,
			`[{"a_b":1,"b_a":2},{"a_b":3,"b_a":4}]`, `[{"b":1,"a":2},{"b":3,"a":4}]`},
		"within a tuple": {`{"type":"array","prefixItems":[{"type":"integer"},{"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"integer"}},"required":["b"]}]}`,
			`[1,{"a_b":1}]`, `[1,{"b":1}]`},
		"in $defs, which lead back": {`{"$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","items":{"$ref":"#/$defs/n"}}},"required":["v"]}},"type":"object","properties":{"z":{"$ref":"#/$defs/n"},"a":{"$ref":"#/$defs/n"}}}`,
			`{"a_z":{"a_v":1,"b_kids":[{"a_v":2}]},"b_a":{"a_v":3}}`, `{"z":{"v":1,"kids":[{"v":2}]},"a":{"v":3}}`},
		"names that collide": {`{"type":"object","properties":{"b_x":{"type":"integer"},"x":{"type":"integer"},"a_x":{"type":"integer"}},"required":["b_x","x","a_x"]}`,
			`{"a_b_x":1,"b_x":2,"c_a_x":3}`, `{"b_x":1,"x":2,"a_x":3}`},
		"a map has the names of the answer": {`{"type":"object","properties":{"z":{"type":"object","additionalProperties":{"type":"object","properties":{"n":{"type":"integer"},"k":{"type":"integer"}},"required":["n"]}},"a":{"type":"integer"}},"required":["z"]}`,
			`{"a_z":{"a_z":{"a_n":1},"n":{"a_n":2,"b_k":3}},"b_a":1}`, `{"z":{"a_z":{"n":1},"n":{"n":2,"k":3}},"a":1}`},
		"other keys beside known ones": {`{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"}},"required":["z","a"],"additionalProperties":{"type":"integer"}}`,
			`{"a_z":1,"b_a":2,"b_z":3}`, `{"z":1,"a":2,"b_z":3}`},
		"any other keys": {`{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"}},"additionalProperties":true}`,
			`{"a_z":1,"q":{"a_z":1}}`, `{"z":1,"q":{"a_z":1}}`},
		"alternatives told apart by a tag": {`{"anyOf":[{"type":"object","properties":{"k":{"const":"a"},"b":{"type":"integer"}},"required":["k","b"]},{"type":"object","properties":{"k":{"const":"b"},"c":{"type":"string"},"a":{"type":"string"}},"required":["k","c","a"]}]}`,
			`{"a_k":"b","b_c":"x","c_a":"y"}`, `{"k":"b","c":"x","a":"y"}`},
		"alternatives of another type": {`{"type":"object","properties":{"z":{"type":["object","null","array"],"properties":{"n":{"type":"null"},"k":{"type":"null"}}},"b":{"anyOf":[{"type":"integer"},{"type":"array","items":{"type":"string"}}]}}}`,
			`{"a_z":{"a_n":null},"b_b":["a_n"]}`, `{"z":{"n":null},"b":["a_n"]}`},
		"a value of a const":            {`{"type":"object","properties":{"z":{"const":{"b":1,"a":2}},"a":{"enum":[1.0,"x"]}}}`, `{"a_z":{"a":2,"b":1},"b_a":1}`, `{"z":{"a":2,"b":1},"a":1}`},
		"what does not follow stays":    {`{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"}},"required":["z"]}`, `{"z":1}`, `{"z":1}`},
		"a wrong type stays":            {`{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"}}}`, `{"a_z":"1"}`, `{"a_z":"1"}`},
		"what is no JSON stays":         {`{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"}}}`, `I cannot.`, `I cannot.`},
		"numbers keep their text":       {`{"type":"object","properties":{"z":{"type":"number"},"a":{"type":"number"}}}`, `{"a_z":1.50,"b_a":1e2}`, `{"z":1.50,"a":1e2}`},
		"a name that would be repeated": {`{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"}},"additionalProperties":{"type":"integer"}}`, `{"a_z":1,"z":1}`, `{"z":1,"z":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustCompile(t, c.schema)
			format, restore := s.Ordered()
			checkSafe(t, name, format)
			checkSorted(t, format)
			if got := string(restore(json.RawMessage(c.answer))); got != c.want {
				t.Errorf("%s\n became %s,\n want %s\n of %s", c.answer, got, c.want, format)
			}
		})
	}
}

// checkSorted: sorted by name, the properties are those of the schema in its order.
func checkSorted(t *testing.T, format json.RawMessage) {
	t.Helper()
	tree, err := parseNode(format, false)
	if err != nil {
		t.Fatal(err)
	}
	subschemas(tree, func(at string, s node) {
		properties, _ := s.get("properties")
		if !slices.IsSortedFunc(properties.members, func(a, b member) int { return strings.Compare(a.key, b.key) }) {
			t.Errorf("not sorted at %q: %s", at, format)
		}
	})
}

// A name that the model was free to choose can meet a restored one; then the answer contradicts itself and is refused.
func TestOrderedRefusesContradictions(t *testing.T) {
	s := mustCompile(t, `{"type":"object","properties":{"z":{"type":"integer"},"a":{"type":"integer"}},"additionalProperties":{"type":"integer"}}`)
	_, restore := s.Ordered()
	if e := s.Extract(string(restore(json.RawMessage(`{"a_z":1,"z":2}`))), "", false); e.Finding != Refused {
		t.Errorf("finding %d, value %s", e.Finding, e.Value)
	}
}

// More properties than there are letters.
func TestOrderedManyProperties(t *testing.T) {
	for _, n := range []int{2, 26, 27, 100} {
		properties, answer, want := object(), object(), object()
		for i := range n {
			name := fmt.Sprintf("p%d", n-i)
			properties.members = append(properties.members, member{name, object(member{"type", text("integer")})})
			want.members = append(want.members, member{name, number(i)})
		}
		s := mustCompile(t, string(object(member{"type", text("object")}, member{"properties", properties}).encode()))
		format, restore := s.Ordered()
		checkSorted(t, format)
		var sent struct{ Properties map[string]any }
		if err := json.Unmarshal(format, &sent); err != nil {
			t.Fatal(err)
		}
		for i, name := range slices.Sorted(maps.Keys(sent.Properties)) { // as such a server asks for them
			answer.members = append(answer.members, member{name, number(i)})
		}
		if got := string(restore(answer.encode())); got != string(want.encode()) {
			t.Errorf("%d properties: %s", n, got)
		}
	}
}

// Each level of these alternatives has to be tried twice; what fits none of them stays as it is, in bounded time.
func TestOrderedTimeIsBounded(t *testing.T) {
	const depth = 10
	defs := []string{fmt.Sprintf(`"d%d":{"type":"null"}`, depth)}
	for i := range depth {
		const one = `{"type":"object","properties":{"z":{"$ref":"#/$defs/d%d"},"%s":{"type":"integer"}},"required":["z","%s"]}`
		defs = append(defs, fmt.Sprintf(`"d%d":{"anyOf":[`+one+`,`+one+`]}`, i, i+1, "a", "a", i+1, "b", "b"))
	}
	s := mustCompile(t, `{"$ref":"#/$defs/d0","$defs":{`+strings.Join(defs, ",")+`}}`)
	_, restore := s.Ordered()
	for bottom, fits := range map[string]bool{"null": true, "0": false} {
		answer := strings.Repeat(`{"a_z":`, depth) + bottom + strings.Repeat(`,"b_b":1}`, depth)
		want := answer
		if fits {
			want = strings.NewReplacer("a_z", "z", "b_b", "b").Replace(answer)
		}
		if got := string(restore(json.RawMessage(answer))); got != want {
			t.Errorf("%s: %s", answer, got)
		}
	}
}
