package probe

import (
	"bytes"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/loopkeeper/loopkeeper/hwprobe"
)

var reportSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	text, err := jsonschema.UnmarshalJSON(strings.NewReader(hwprobe.Schema))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("report.json", text); err != nil {
		return nil, err
	}
	return c.Compile("report.json")
})

// checkSchema validates a report against its schema. Every report of the tests comes by here, see checkConsistent.
func checkSchema(t *testing.T, report []byte) {
	t.Helper()
	schema, err := reportSchema()
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(report))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("the report is not as its schema says: %v\n%s", err, report)
	}
}

func TestSchemaRefusesWhatNoReportIs(t *testing.T) {
	schema, err := reportSchema()
	if err != nil {
		t.Fatal(err)
	}
	const whole = `{"version":1,"host":{"hostname":"","os":"linux","arch":"amd64","total_bytes":null,"available_bytes":null},"devices":[],` +
		`"pools":[{"id":"host","kind":"host","total_bytes":9,"total_source":"os","free_bytes":null}],"warnings":[]}`
	for what, change := range map[string][2]string{
		"as it is":                    {"", ""},
		"another version":             {`"version":1`, `"version":2`},
		"a total of zero":             {`"total_bytes":9`, `"total_bytes":0`},
		"a number without its source": {`"total_source":"os",`, ``},
		"a source without a number":   {`"free_bytes":null`, `"free_bytes":null,"free_source":"os"`},
		"an age of what is new":       {`"total_source":"os"`, `"total_source":"os","total_age_seconds":3`},
		"no age of what is old":       {`"total_source":"os"`, `"total_source":"last known"`},
		"no host pool":                {`"id":"host"`, `"id":"gpu:a"`},
		"null for an empty list":      {`"devices":[]`, `"devices":null`},
		"an unknown field":            {`"warnings":[]`, `"warnings":[],"more":1`},
	} {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(strings.Replace(whole, change[0], change[1], 1)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != (change[0] == "") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
