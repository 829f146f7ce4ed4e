package calls

import (
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	item := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		template string
		item     *string
		want     string
		fails    string
	}{
		"the item goes where it is named":   {"Sum up {{item}} now", item("X"), "Sum up X now", ""},
		"white space in the braces":         {"{{ item }}", item("X"), "X", ""},
		"twice":                             {"{{item}}{{item}}", item("X"), "XX", ""},
		"braces in a body are left alone":   {"See: {{item}}", item("{{item}} {{other}} ${x}"), "See: {{item}} {{other}} ${x}", ""},
		"an item that is not named follows": {"Sum up.", item("X"), "Sum up.\n\nX", ""},
		"an empty item is an item":          {"a{{item}}b", item(""), "ab", ""},
		"an unknown name":                   {"{{itm}}", item("X"), "", "{{itm}}"},
		"a name beside the known one":       {"{{item}} {{file}}", item("X"), "", "{{file}}"},
		"no item":                           {"{{item}}", nil, "", "no item"},
		"single braces are text":            {"JSON like {\"a\":1}", nil, "JSON like {\"a\":1}", ""},
		"control strings in a body only":    {"<think> {{item}}", item("<think>"), "<think> ‹think›", ""},
	} {
		got, err := fill(c.template, c.item)
		switch {
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: error %v, want one about %s", name, err, c.fails)
		case c.fails == "" && (err != nil || got != c.want):
			t.Errorf("%s: %q %v, want %q", name, got, err, c.want)
		}
	}
}

// The strings are the turn and thinking marks of the chat templates of common model families.
func TestNeutralise(t *testing.T) {
	for _, mark := range []string{
		"<|im_start|>", "<|im_end|>", "<|eot_id|>", "<|start_header_id|>", "<|endoftext|>", "<|channel|>", "<start_of_turn>", "<end_of_turn>",
		"<think>", "</think>", "</Think>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "<s>", "</s>", "<tool_call>", "</tool_response>", "<｜User｜>",
	} {
		got := neutralise("a" + mark + "b\nc")
		if strings.Contains(got, mark) || controlStrings.MatchString(got) {
			t.Errorf("%s is still there: %q", mark, got)
		}
		if len([]rune(got)) != len([]rune("a"+mark+"b\nc")) {
			t.Errorf("%s: the number of runes changed, so quotes would be found at the wrong place", mark)
		}
	}
	for _, plain := range []string{"if a < b || c > d {", "<p>text</p>", "x[0] | y", "a || b", "[link](url)", "<strong>", "日本 é"} {
		if got := neutralise(plain); got != plain {
			t.Errorf("%q became %q", plain, got)
		}
	}
}
