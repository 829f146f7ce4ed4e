package policy

import (
	"strings"
	"testing"
)

var yes, no = true, false

func TestDecide(t *testing.T) {
	look := Nature{Authority: Inform, Affects: Self}
	write := Nature{Authority: Act, Affects: Workspace, Reversible: true, Verifiable: true}
	post := Nature{Authority: Act, Affects: External}
	draft := Nature{Authority: Act, Affects: External, Reversible: true}
	for name, c := range map[string]struct {
		rules []Rule
		tool  string
		n     Nature
		do    Do
		line  string
	}{
		"a look runs by default":                {nil, "file.read", look, Run, "everything else"},
		"a reversible write runs by default":    {nil, "file.write", write, Run, "everything else"},
		"an irreversible external act asks":     {nil, "http.request", post, Ask, "external"},
		"a reversible external act runs":        {nil, "http.request", draft, Run, "everything else"},
		"an irreversible local act runs":        {nil, "exec", Nature{Authority: Act, Affects: Workspace}, Run, "everything else"},
		"external advice runs":                  {nil, "x", Nature{Authority: Advise, Affects: External}, Run, "everything else"},
		"the first line wins":                   {[]Rule{{Tool: "http.request", Do: Run, Line: "1"}, {Affects: External, Do: Refuse, Line: "2"}}, "http.request", post, Run, "1"},
		"a line that does not fit is passed by": {[]Rule{{Tool: "http.request", Do: Run, Line: "1"}, {Affects: External, Do: Refuse, Line: "2"}}, "mail.send", post, Refuse, "2"},
		"no line fits: the default":             {[]Rule{{Tool: "file.write", Do: Refuse, Line: "1"}}, "http.request", post, Ask, "external"},
		"the beginning of a name":               {[]Rule{{Tool: "file.*", Do: Ask, Line: "1"}}, "file.read", look, Ask, "1"},
		"the beginning of another name":         {[]Rule{{Tool: "file.*", Do: Ask, Line: "1"}}, "filed", look, Run, "everything else"},
		"a name is no beginning":                {[]Rule{{Tool: "file.read", Do: Refuse, Line: "1"}}, "file.readlink", look, Run, "everything else"},
		"every call":                            {[]Rule{{Do: Refuse, Line: "1"}}, "file.read", look, Refuse, "1"},
		"what can be undone":                    {[]Rule{{Reversible: &yes, Do: Ask, Line: "1"}}, "file.write", write, Ask, "1"},
		"what cannot be undone":                 {[]Rule{{Reversible: &no, Do: Refuse, Line: "1"}}, "file.write", write, Run, "everything else"},
		"what cannot be verified":               {[]Rule{{Verifiable: &no, Do: Refuse, Line: "1"}}, "http.request", draft, Refuse, "1"},
		"all fields must fit":                   {[]Rule{{Authority: Act, Affects: External, Do: Refuse, Line: "1"}}, "file.write", write, Run, "everything else"},
	} {
		got := Decide(c.rules, c.tool, c.n)
		if got.Do != c.do || !strings.Contains(got.Line, c.line) {
			t.Errorf("%s: %s by %q, want %s by %q", name, got.Do, got.Line, c.do, c.line)
		}
	}
}
