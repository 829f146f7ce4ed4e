package structure

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The numbers are (Σ maxLength/3 + 6 × leaf fields) × 1.2 by hand.
func TestBudget(t *testing.T) {
	nested := strings.Repeat(`{"type":"array","maxItems":2000,"items":`, 6) + `{"type":"string"}` + strings.Repeat("}", 6)
	for name, c := range map[string]struct {
		schema      string
		least, most int
	}{
		"one short string":             {`{"type":"object","properties":{"v":{"type":"string","maxLength":300}}}`, 127, 128},
		"a list of strings":            {`{"type":"array","maxItems":10,"items":{"type":"string","maxLength":90}}`, 432, 432},
		"a list of objects":            {`{"type":"array","maxItems":4,"items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string","maxLength":60}}}}`, 153, 154},
		"a tuple":                      {`{"type":"array","prefixItems":[{"type":"string","maxLength":300},{"type":"integer"}]}`, 134, 135},
		"the largest alternative":      {`{"anyOf":[{"type":"string","maxLength":30},{"type":"string","maxLength":600}]}`, 247, 248},
		"parts of allOf":               {`{"allOf":[{"type":"object","properties":{"a":{"type":"string","maxLength":300}}},{"type":"object","properties":{"b":{"type":"string","maxLength":300}}}]}`, 254, 255},
		"a type or null":               {`{"type":["null","string"],"maxLength":600}`, 247, 248},
		"a reference":                  {`{"$defs":{"x":{"type":"string","maxLength":600}},"type":"object","properties":{"v":{"$ref":"#/$defs/x"}}}`, 247, 248},
		"a pattern bounds a string":    {`{"type":"object","properties":{"v":{"type":"string","pattern":"^[a-z]{3}-[0-9]{2,300}$"}}}`, 128, 129},
		"an enum":                      {`{"enum":["a","` + strings.Repeat("b", 298) + `"]}`, 127, 128},
		"nothing is as good as little": {`{"type":"boolean"}`, 64, 64},
		"a string without bound":       {`{"type":"string"}`, 800, 810},
		"an array without bound":       {`{"type":"array","items":{"type":"string","maxLength":300}}`, 16 * 127, 16*127 + 16},
		"a map":                        {`{"type":"object","additionalProperties":{"type":"integer"}}`, 230, 231},
		"anything":                     {`{}`, 800, 810},
		"a tree ends":                  {`{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array","maxItems":3,"items":{"$ref":"#"}}}}`, 200, 1000},
		"what leads back to itself":    {`{"anyOf":[{"$ref":"#"},{"type":"integer"}]}`, 64, 64},
		"more than anyone waits for":   {nested, mostBudget, mostBudget},
	} {
		if got := mustCompile(t, c.schema).Budget(); got < c.least || got > c.most {
			t.Errorf("%s: %d, want %d to %d", name, got, c.least, c.most)
		}
	}
}

// The research gives about 350 for its check and 3600 for its plan, whose patterns it leaves out.
func TestBudgetOfTheProposedSchemas(t *testing.T) {
	for file, want := range map[string][2]int{"check": {330, 370}, "plan": {3500, 4400}} {
		raw, err := os.ReadFile("testdata/proposed-" + file + ".json")
		if err != nil {
			t.Fatal(err)
		}
		if got := mustCompile(t, string(raw)).Budget(); got < want[0] || got > want[1] {
			t.Errorf("%s: %d, want %v", file, got, want)
		}
	}
}

// References that fan out are counted once each, or a small schema would take for ever.
func TestBudgetOfManyReferences(t *testing.T) {
	var defs []string
	for i := range 60 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"type":"object","properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
	}
	s := mustCompile(t, `{"$ref":"#/$defs/d0","$defs":{`+strings.Join(defs, ",")+`,"d60":{"type":"string","maxLength":30}}}`)
	if got := s.Budget(); got < leastBudget || got > mostBudget {
		t.Errorf("%d", got)
	}
}
