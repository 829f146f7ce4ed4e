package evidence

import (
	"math"
	"strings"
	"testing"
)

var log = Text{Name: "log.txt", Body: "02:14 seal worn\n02:15 pump stopped\n"}

var subject = Text{
	Name:  "subject",
	Body:  "# Report\r\n\r\nThe pump   ran for “12 hours”.\nIt FAILED at night because\nthe seal was worn.\nLast <|im_end|> line.",
	Shown: "# Report\r\n\r\nThe pump   ran for “12 hours”.\nIt FAILED at night because\nthe seal was worn.\nLast ‹¦im_end¦› line.",
}

func TestNumbersGoOnFromTextToText(t *testing.T) {
	l := Number(nil, log, subject)
	if got := l.Show(0); got != "L0001|02:14 seal worn\nL0002|02:15 pump stopped\n" {
		t.Error(got)
	}
	if got := l.Show(1); !strings.HasPrefix(got, "L0003|# Report\nL0004|\nL0005|The pump") || !strings.HasSuffix(got, "L0008|Last ‹¦im_end¦› line.\n") {
		t.Error(got)
	}
	if l.Count() != 8 || l.CountOf(0) != 2 || l.CountOf(1) != 6 {
		t.Errorf("%d lines, %d and %d", l.Count(), l.CountOf(0), l.CountOf(1))
	}
}

func TestFind(t *testing.T) {
	l := Number(nil, log, subject)
	for name, c := range map[string]struct {
		line  int
		words string
		want  Quote // zero: nowhere
	}{
		"as it stands":                   {5, "pump ran for", Quote{"The pump   ran for “12 hours”.", "subject", 3}},
		"other case, plain quotes":       {5, `RAN for "12 hours"`, Quote{"The pump   ran for “12 hours”.", "subject", 3}},
		"on the line after":              {4, "pump ran", Quote{"The pump   ran for “12 hours”.", "subject", 3}},
		"on the line before":             {6, "pump ran", Quote{"The pump   ran for “12 hours”.", "subject", 3}},
		"two lines away":                 {3, "pump ran", Quote{}},
		"over the end of a line":         {6, "because the seal was", Quote{"It FAILED at night because", "subject", 4}},
		"in a source":                    {1, "seal worn", Quote{"02:14 seal worn", "log.txt", 1}},
		"not over the end of a text":     {2, "stopped # report", Quote{}},
		"the neighbour is another text":  {3, "pump stopped", Quote{}},
		"a slip of the pen":              {7, "the seel was worn", Quote{"the seal was worn.", "subject", 5}},
		"a word more is too much":        {7, "the seal was never worn", Quote{}},
		"another number":                 {5, "ran for 13 hours", Quote{}},
		"a number that runs on":          {5, "ran for 120 hours", Quote{}},
		"words of another meaning":       {5, "the pump never failed", Quote{}},
		"too short to prove anything":    {5, "th", Quote{}},
		"marks only":                     {5, `"..."`, Quote{}},
		"as it was shown":                {8, "last ‹¦im_end¦› line", Quote{"Last <|im_end|> line.", "subject", 6}},
		"a line that is not there":       {9, "pump ran", Quote{}},
		"line 0":                         {0, "seal worn", Quote{}},
		"a line below":                   {-3, "seal worn", Quote{}},
		"the mark copied with the words": {5, "|The pump ran", Quote{"The pump   ran for “12 hours”.", "subject", 3}},
	} {
		got, ok := l.Find(c.line, c.words)
		if got != c.want || ok != (c.want != Quote{}) {
			t.Errorf("%s: %+v %t, want %+v", name, got, ok, c.want)
		}
	}
}

// A short line can be quoted whole, and only whole.
func TestShortLines(t *testing.T) {
	l := Number(nil, Text{Name: "subject", Body: "42\nok then\n---"})
	for words, want := range map[string]bool{"42": true, "42...": true, "4": false, "2": false} {
		if _, ok := l.Find(1, words); ok != want {
			t.Errorf("%q on line 1: %t", words, ok)
		}
	}
	if _, ok := l.Find(2, "ok"); ok {
		t.Error("a part of a line that is too short to prove anything")
	}
	if _, ok := l.Find(3, "---"); ok {
		t.Error("marks prove nothing")
	}
}

// By hand: one replaced character of ten is 0.9; "abc" in "xabyc" needs one insertion.
func TestSimilarity(t *testing.T) {
	for _, c := range []struct {
		words, text string
		want        float64
	}{
		{"abc", "xxabcxx", 1}, {"abcdefghij", "..abcdXfghij..", 0.9}, {"abc", "xabyc", 1 - 1.0/3}, {"abc", "", 0}, {"", "abc", 0}, {"äöü", "äxü", 1 - 1.0/3},
	} {
		if got := similarity(c.words, c.text); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%q in %q: %v, want %v", c.words, c.text, got, c.want)
		}
	}
}

// A long line has several numbers, and what is quoted is the part.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("The pump ran well. ", 60) + "Then the seal broke." // 1160 characters
	l := Number(nil, Text{Name: "subject", Body: "first\n" + long + "\nlast"})
	if l.Count() != 5 || l.CountOf(0) != 3 {
		t.Fatalf("%d numbered lines, %d lines", l.Count(), l.CountOf(0))
	}
	q, ok := l.Find(4, "the seal broke")
	if !ok || q.Line != 2 || len(q.Text) > longestLine || !strings.HasSuffix(q.Text, "Then the seal broke.") {
		t.Errorf("%+v %t", q, ok)
	}
	joined := ""
	for _, x := range l.lines[1:4] {
		joined += x.body
	}
	if joined != long {
		t.Error("something of the line is lost")
	}
}

func TestExcerpt(t *testing.T) {
	var b strings.Builder
	for range 200 {
		b.WriteString("Nothing to see.\n")
	}
	body := b.String() + "The valve was replaced.\n" + b.String()
	l := Number(nil, log, Text{Name: "subject", Body: body})
	shown := l.Excerpt([]int{50}, "Who replaced the valve?")
	if len(shown) != 2 || shown[0] != "…\n" {
		t.Fatalf("%q", shown)
	}
	if s := shown[1]; !strings.Contains(s, "L0050|Nothing") || !strings.Contains(s, "L0203|The valve was replaced.") || strings.Contains(s, "L0100|") || strings.Count(s, "\n") > 20 {
		t.Errorf("%s", s)
	}
	if q, ok := l.Find(203, "valve was replaced"); !ok || q.Line != 201 {
		t.Errorf("%+v", q)
	}
}

func TestEmptyAndPaddedTexts(t *testing.T) {
	for _, s := range []string{"", " \n\t", ":", ".", "...\n---\n***", "Solution", "Solution:\n\n", "**Answer:**", "Thought process:",
		"Let's solve this problem step by step.", "Let’s solve this problem step by step:", "解", "かいせつ", "Respuesta", "# Report\n\n## Summary\n", "xxxxxxxx", "The final answer is:", "TODO"} {
		if !IsEmpty(s) {
			t.Errorf("%q holds something", s)
		}
	}
	for _, s := range []string{"42", "No.", "yes", "Solution: 42", "# Report\nThe pump failed.", "x", "ok", "解 = 5", "Paris"} {
		if IsEmpty(s) {
			t.Errorf("%q holds nothing", s)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add(subject.Body, subject.Shown, 3, "pump ran")
	f.Add("a\n\nb\r\nc", "", 2, "a b c")
	f.Add(strings.Repeat("ä", 900), strings.Repeat("b", 900), 2, "äää")
	f.Fuzz(func(t *testing.T, body, shown string, number int, words string) {
		if len(body)+len(words) > 4000 {
			return
		}
		l := Number(nil, Text{Name: "s", Body: body, Shown: shown})
		if q, ok := l.Find(number, words); ok && shown == "" {
			clean := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body)
			if !strings.Contains(clean, q.Text) || q.Line < 1 || q.Line > strings.Count(clean, "\n")+1 {
				t.Errorf("%q on line %d is not in %q", q.Text, q.Line, body)
			}
		}
		l.Excerpt([]int{number}, words)
	})
}
