package prompts

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

func TestEveryTextIsThereAndHasWhatItMustHave(t *testing.T) {
	entries, err := files.ReadDir("texts")
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(rules) || len(Names()) != len(rules) {
		t.Errorf("%d files and %d texts for %d rules", len(entries), len(Names()), len(rules))
	}
	for _, p := range Set(nil).List() {
		if err := Check(p.Name, p.Text); err != nil {
			t.Error(err)
		}
		if p.Changed || p.Text != strings.TrimSpace(p.Text) {
			t.Errorf("%s: changed %t, text %q", p.Name, p.Changed, p.Text)
		}
	}
}

// What varies from call to call would throw the shared prefix out of the cache. Only the texts that come behind what
// is shared are filled.
func TestNothingVariesBeforeTheTask(t *testing.T) {
	for _, name := range []string{PlanRole, CheckRole} {
		if strings.Contains(Set(nil).Text(name), "{{") {
			t.Errorf("%s has a placeholder", name)
		}
	}
	dates := regexp.MustCompile(`(?i)\b(19|20)\d\d\b|today|current date|\b[0-9a-f]{8}-`)
	for _, p := range Set(nil).List() {
		if m := dates.FindString(p.Text); m != "" {
			t.Errorf("%s says %q", p.Name, m)
		}
	}
}

func TestVersion(t *testing.T) {
	// printf abc | sha256sum
	if v := Version("abc"); v != "ba7816bf8f01" {
		t.Error(v)
	}
	p := Set{PlanRole: "abc"}.List()
	for _, x := range p {
		if x.Changed != (x.Name == PlanRole) {
			t.Errorf("%s: changed %t", x.Name, x.Changed)
		}
		if x.Name == PlanRole && (x.Version != "ba7816bf8f01" || !strings.HasPrefix(x.SHA256, x.Version) || len(x.SHA256) != 64) {
			t.Errorf("%+v", x)
		}
	}
}

func TestFill(t *testing.T) {
	s := Set{CheckAgain: "Not {{words}}, and {{ words }}, but {{other}}."}
	if got := s.Fill(CheckAgain, map[string]string{"words": "{{other}} $1"}); got != "Not {{other}} $1, and {{other}} $1, but {{other}}." {
		t.Error(got)
	}
}

func TestTextsThatCannotBeUsedAreRefusedWithFileAndReason(t *testing.T) {
	think := Set(nil).Text(CheckThink)
	for name, c := range map[string]struct{ file, text, reason string }{
		"a placeholder is missing": {"check_think.txt", strings.ReplaceAll(think, "{{answers}}", ""), "lacks {{answers}}"},
		"a placeholder too many":   {"check_think.txt", think + " {{date}}", "{{date}}"},
		"a placeholder misspelt":   {"plan_repair.txt", "{{plan}} {{violation}}", "lacks {{violations}}"},
		"a field is not named":     {"check_fields.txt", "a_evidence a_line b_words b_against d_result {{answers}}", "c_reason"},
		"a format while thinking":  {"check_think.txt", think + " Answer in json.", "JSON"},
		"empty":                    {"plan_facts.txt", " \n", "empty"},
		"too long":                 {"plan_facts.txt", strings.Repeat("x", maxText+1), "16385 bytes"},
		"not text":                 {"plan_facts.txt", "\xff\xfe", "UTF-8"},
		"no such prompt":           {"plan_thinks.txt", "x", "no prompt of that name"},
	} {
		_, err := Load(fstest.MapFS{c.file: {Data: []byte(c.text)}})
		var e *Error
		if !errors.As(err, &e) || e.File != c.file || !strings.Contains(e.Reason, c.reason) || !strings.Contains(err.Error(), c.file) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Load(fstest.MapFS{"plan_role.txt": {}, "check_role.txt": {}, "README.md": {Data: []byte("x")}})
	if err == nil || !strings.Contains(err.Error(), "plan_role.txt") || !strings.Contains(err.Error(), "check_role.txt") || strings.Contains(err.Error(), "README") {
		t.Errorf("not both named: %v", err)
	}
}

func TestOverride(t *testing.T) {
	s, err := Load(fstest.MapFS{"plan_facts.txt": {Data: []byte("Teile das Ziel.\r\n")}, "notes.md": {}, "old": {Mode: 0o755 | 1<<31}})
	if err != nil {
		t.Fatal(err)
	}
	if s.Text(PlanFacts) != "Teile das Ziel." || s.Text(PlanRole) != Default()[PlanRole] || len(s) != 1 {
		t.Errorf("%q", s)
	}
	more, err := s.With(map[string]string{CheckRole: "Prüfe."})
	if err != nil || more.Text(CheckRole) != "Prüfe." || more.Text(PlanFacts) != "Teile das Ziel." || s.Text(CheckRole) == "Prüfe." {
		t.Errorf("%q %v", more, err)
	}
	d := Default()
	d[PlanFacts] = "x"
	if Default()[PlanFacts] == "x" {
		t.Error("a change of one set changes the defaults")
	}
}
