package ui

import "testing"

// The attacks are those of "Trojan Source" (CVE-2021-42574), of hidden instructions in tag characters, and of terminal escape sequences.
func TestNothingInATextIsHidden(t *testing.T) {
	for in, want := range map[string]string{
		"admin\u202e\u2066// check\u2069\u2066":    "admin<U+202E><U+2066>// check<U+2069><U+2066>",
		"pay\u200bpal\ufeff":                       "pay<U+200B>pal<U+FEFF>",
		"hi\U000e0049\U000e0047":                   "hi<U+E0049><U+E0047>",
		"\x1b[31mred\x1b]0;title\x07":              "<U+001B>[31mred<U+001B>]0;title<U+0007>",
		"a\r\nb\tc\rd":                             "a\nb\tc<U+000D>d",
		"\u009b2J":                                 "<U+009B>2J",
		"می\u200cخواهم \U0001f469\u200d\U0001f680": "می\u200cخواهم \U0001f469\u200d\U0001f680",
		"a\u200db":                                 "a<U+200D>b",
		"naïve 東京 ✓":                               "naïve 東京 ✓",
	} {
		if got := Text(in); got != want {
			t.Errorf("Text(%q) is %q, want %q", in, got, want)
		}
	}
	if got, want := Line("one\r\n two\u2028three\t\x1b[2J\u202e"), "one  two three <U+001B>[2J<U+202E>"; got != want {
		t.Errorf("Line is %q, want %q", got, want)
	}
}
