package configs

import (
	"strings"
	"testing"
)

func TestPolicyIsRead(t *testing.T) {
	c, from, err := load(t, "policy:\n  - {tool: \"file.*\", do: run}\n  - authority: act\n    affects: external\n    reversible: false\n    do: ask\n  - {do: refuse}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sprint(c.Policy), "file.*: run; act, external, not reversible: ask; everything: refuse"; got != want {
		t.Errorf("it is shown as %q, want %q", got, want)
	}
	for key, at := range map[string]string{"policy[0]": ":2:6", "policy[1]": ":3:5", "policy[2]": ":7:6"} {
		if got := from.Of(key); !strings.HasSuffix(got, at) {
			t.Errorf("%s stands at %q, want %s", key, got, at)
		}
	}
}

func TestFaultsOfThePolicyNameTheirPlace(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"policy:\n  - {do: run}\n  - {tool: \"file.*\", do: maybe}\n", "policy[1].do (file "},
		{"policy:\n  - {tool: \"file.*\", do: maybe}\n", `:2:26): want run, ask or refuse, got "maybe"`},
		{"policy:\n  - {tool: \"file.*\"}\n", `want run, ask or refuse, got ""`},
		{"policy:\n  - {authority: order, do: run}\n", `policy[0].authority (file `},
		{"policy:\n  - {affects: world, do: run}\n", `want self, workspace or external, got "world"`},
		{"policy:\n  - {tool: \"*.read\", do: run}\n", `policy[0].tool (file `},
		{"policy:\n  - {tools: file.read, do: run}\n", `unknown field "tools"`},
		{"policy:\n  - {reversible: perhaps, do: run}\n", `2:18: policy: want true or false, got "perhaps"`},
	} {
		_, _, err := load(t, c.file, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.file, err, c.want)
		}
	}
}
