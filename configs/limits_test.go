package configs

import (
	"strings"
	"testing"
)

func TestLimitsAreReadWithTheirOrigins(t *testing.T) {
	c, from, err := load(t, "limits:\n  tokens: 5\n  workflows:\n    map: {calls: 7, tokens: -1}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	l := c.Limits
	if l.Tokens != 5 || l.SpawnDepth != 8 || l.CallSeconds != 1800 || l.Workflows["map"] != (Budget{Calls: 7, Tokens: -1}) {
		t.Errorf("%+v", l)
	}
	if !strings.HasSuffix(from["limits.tokens"], ":2") || from["limits.spawn_depth"] != "default" {
		t.Errorf("origins %v", from)
	}
	if text := l.Workflows.String(); text != "map.tokens: -1, map.calls: 7" {
		t.Errorf("it is shown as %q", text)
	}
}

func TestLimitsThatMakeNoSense(t *testing.T) {
	for _, tc := range []struct{ file, want string }{
		{"limits: {tokens: -1}", "limits.tokens"},
		{"limits: {active_seconds: 999999999999}", "limits.active_seconds"},
		{"limits: {most_seconds: 60}", "less than least_seconds"},
		{"limits: {workflows: {map: {spawn_depth: -2}}}", "limits.workflows.map.spawn_depth"},
		{"limits: {workflows: {map: {colour: 2}}}", `unknown field "colour"`},
	} {
		if _, _, err := load(t, tc.file, nil); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", tc.file, err)
		}
	}
}
