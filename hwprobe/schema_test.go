package hwprobe

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestSchemaNamesEveryField holds the schema against the types: what JSON may have is what the schema lists, and what is
// always there is required.
func TestSchemaNamesEveryField(t *testing.T) {
	type object struct {
		Properties map[string]any `json:"properties"`
		Required   []string       `json:"required"`
	}
	var schema struct {
		object
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(Schema), &schema); err != nil {
		t.Fatal(err)
	}
	for kind, described := range map[reflect.Type]object{
		reflect.TypeFor[Report](): schema.object, reflect.TypeFor[Host](): schema.Defs["host"], reflect.TypeFor[Device](): schema.Defs["device"],
		reflect.TypeFor[Pool](): schema.Defs["pool"], reflect.TypeFor[PoolPart](): schema.Defs["part"], reflect.TypeFor[Warning](): schema.Defs["warning"],
	} {
		var names, always []string
		for i := range kind.NumField() {
			name, option, _ := strings.Cut(kind.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
			if option == "" {
				always = append(always, name)
			}
		}
		slices.Sort(names)
		if in := slices.Sorted(maps.Keys(described.Properties)); !slices.Equal(in, names) {
			t.Errorf("%s: the schema has %v, the type %v", kind.Name(), in, names)
		}
		slices.Sort(always)
		slices.Sort(described.Required)
		if !slices.Equal(described.Required, always) {
			t.Errorf("%s: the schema requires %v, the type always has %v", kind.Name(), described.Required, always)
		}
	}
}
