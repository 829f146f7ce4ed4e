package run

import (
	"encoding/json"
	"strings"
	"testing"
)

// What every item would fail on is refused once, when the step is asked for.
func TestPromptsThatNoWorkerCouldFill(t *testing.T) {
	for _, tc := range []struct{ kind, body, want string }{
		{KindBatch, `{"model":"m","prompt":"Sum {{item}}, {{ item }}","items":["a"]}`, ""},
		{KindBatch, `{"model":"m","prompt":"no place for it","items":["a"]}`, ""},
		{KindGenerate, `{"model":"m","prompt":"{ {item} } and {{item}}","item":"{{name}}"}`, ""},
		{KindBatch, `{"model":"m","prompt":"Sum {{file}}","items":["a"]}`, "unknown placeholder {{file}}"},
		{KindBatch, `{"model":"m","prompt":" \n","items":["a"]}`, "the prompt is empty"},
		{KindGenerate, `{"model":"m","prompt":"Sum {{item}}"}`, "there is no item"},
		{KindPlan, `{"model":"m","goal":"{{anything}}"}`, ""},
	} {
		_, err := parseSpec(tc.kind, json.RawMessage(tc.body))
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s %s: got %v, want %q", tc.kind, tc.body, err, tc.want)
		}
	}
}

// An output without a value, as an older library let through, is null in every view.
func TestAnOutputWithoutAValueIsNull(t *testing.T) {
	s := &State{}
	if err := s.noted(&OutputNoted{Pos: 0, Body: json.RawMessage(`{"name":"x","sources":[]}`)}, birth); err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(s.Outputs); err != nil || !strings.Contains(string(got), `"value":null`) {
		t.Errorf("%s, %v", got, err)
	}
}
