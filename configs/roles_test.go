package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func fromFile(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "loopkeeper.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, _, err := Load(Sources{File: path, Hostname: "attic", DataDir: "/var/lib/loopkeeper"})
	return c, err
}

func TestRolesAreRead(t *testing.T) {
	c, err := fromFile(t, "roles:\n  judge: [\"qwen3:8b\", {model: my-tune, family: llama}]\n  planner:\n  - gpt-oss:20b\n")
	if err != nil {
		t.Fatal(err)
	}
	want := Roles{"judge": {{Model: "qwen3:8b"}, {Model: "my-tune", Family: "llama"}}, "planner": {{Model: "gpt-oss:20b"}}}
	if !reflect.DeepEqual(c.Roles, want) {
		t.Errorf("%+v", c.Roles)
	}
	if said := c.Roles.String(); said != "judge: qwen3:8b, my-tune of llama; planner: gpt-oss:20b" {
		t.Errorf("shown as %q", said)
	}
}

func TestFaultsOfRolesNameTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"roles:\n  judge: []":                       "roles.judge (file ",
		"roles:\n  Judge: [a]":                      "want a name of a-z",
		"roles:\n  judge: [a, a]":                   "a is in the list twice",
		"roles:\n  small: [a]\n  judge: [b, small]": "got the role small",
		"roles:\n  judge: [\"\"]":                   "roles.judge[0] (file ",
		"roles:\n  judge: [{modle: a}]":             "modle",
		"prompts: here":                             "want a folder from the root on",
	} {
		if _, err := fromFile(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
