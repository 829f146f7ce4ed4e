package tools

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func TestEveryToolSaysWhatItIs(t *testing.T) {
	r := newRig(t)
	var names []string
	for _, d := range r.Tools() {
		names = append(names, d.Name)
		if d.Summary == "" || !strings.HasSuffix(d.Summary, ".") {
			t.Errorf("%s: the summary %q is no sentence", d.Name, d.Summary)
		}
		if d.Effect != None && d.Verify == "" {
			t.Errorf("%s has an effect and does not say how to see it", d.Name)
		}
		for _, schema := range []json.RawMessage{d.Input, d.Output} {
			doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(schema)))
			if err == nil {
				c := jsonschema.NewCompiler()
				_ = c.AddResource("mem:s", doc)
				_, err = c.Compile("mem:s")
			}
			if err != nil {
				t.Errorf("%s: %v", d.Name, err)
			}
		}
	}
	if want := []string{"file.list", "file.read", "file.write"}; !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v: effect.log is there only when asked for", names, want)
	}
}

// What a tool returns is what its description promises.
func TestValuesFitTheirSchemas(t *testing.T) {
	r := newRig(t)
	r.put("a.txt", "text")
	for tool, input := range map[string]string{
		"file.list": `{}`, "file.read": `{"path":"a.txt"}`, "file.write": `{"path":"b.txt","body":"new"}`,
	} {
		doc, _ := jsonschema.UnmarshalJSON(strings.NewReader(string(r.tools[tool].Output)))
		c := jsonschema.NewCompiler()
		_ = c.AddResource("mem:s", doc)
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(r.run("k/"+tool, tool, input).Value)))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.MustCompile("mem:s").Validate(value); err != nil {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

func TestBadInputNamesToolAndField(t *testing.T) {
	r := newRig(t)
	r.put("a.txt", "text")
	for _, c := range []struct{ tool, input, kind, want string }{
		{"file.raed", `{}`, UnknownTool, `no tool "file.raed"`},
		{"file.read", `{`, InvalidInput, "file.read: the input is not JSON"},
		{"file.read", `{}`, InvalidInput, "file.read: missing property 'path'"},
		{"file.read", `{"path":7}`, InvalidInput, "file.read: input.path: got number, want string"},
		{"file.read", `{"path":"a.txt","pth":"b"}`, InvalidInput, "'pth'"},
		{"file.read", `{"path":"../a.txt"}`, InvalidInput, "input.path"},
		{"file.read", `{"path":"/etc/passwd"}`, InvalidInput, "input.path"},
		{"file.read", `{"path":"a\\..\\b"}`, InvalidInput, "input.path"},
		{"file.read", `{"path":"a.txt","workspace":"wrok"}`, NotFound, `input.workspace: there is no workspace "wrok"`},
		{"file.read", `{"path":"gone.txt"}`, NotFound, "work:gone.txt"},
		{"file.write", `{"path":"x","body":"b","replaces":"abc"}`, InvalidInput, "input.replaces"},
		{"file.write", `{"path":".","body":"b"}`, NotAFile, "input.path"},
		{"file.list", `{"pattern":"[a"}`, InvalidInput, "input.pattern"},
		{"file.list", `{"limit":0}`, InvalidInput, "input.limit"},
		{"file.list", `{"path":"a.txt"}`, NotAFile, "no folder"},
	} {
		f := r.refused("k", c.tool, c.input, c.kind)
		if !strings.Contains(f.Message, c.want) {
			t.Errorf("%s %s: %q does not say %q", c.tool, c.input, f.Message, c.want)
		}
		if len(f.Next) == 0 && !strings.Contains(f.Message, "not JSON") {
			t.Errorf("%s %s: says nothing of what to do next", c.tool, c.input)
		}
	}
}

func TestWorkspaceMustBeNamedWhereThereAreTwo(t *testing.T) {
	other := t.TempDir()
	r := newRig(t, func(o *Options) { o.Workspaces = append(o.Workspaces, Workspace{Name: "other", Dir: other}) })
	f := r.refused("k", "file.list", `{}`, InvalidInput)
	if !strings.Contains(f.Message, "other, work") {
		t.Errorf("%q does not name the workspaces", f.Message)
	}
	r.refused("k", "file.write", `{"path":"x","body":"","workspace":"other"}`, NotAllowed)
	if got := r.value("k", "file.list", `{"workspace":"other"}`)["workspace"]; got != "other" {
		t.Errorf("listed %v", got)
	}
}

func TestWorkspacesAreRefusedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	for _, list := range [][]Workspace{
		{{Name: "a", Dir: dir}, {Name: "a", Dir: dir}},
		{{Name: "", Dir: dir}},
		{{Name: "a", Dir: dir + "/gone"}},
	} {
		if r, err := New(Options{Workspaces: list}); err == nil {
			t.Errorf("%v was accepted", list)
			_ = r.Close()
		}
	}
}
