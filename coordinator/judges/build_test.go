package judges

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A set is only worth something when its answers are right, so each defect is looked for in a way of the test's own.
func TestEveryDefectIsInTheTextAndNotInItsPair(t *testing.T) {
	for _, kind := range append(Types(), "") {
		set, err := Build(nil, Plan{Type: kind, Seed: 7})
		if err != nil {
			t.Fatal(err)
		}
		if len(set) != 60 {
			t.Errorf("%q: %d subjects, want 30 and 30", kind, len(set))
		}
		defects := map[string]int{}
		for i := 0; i < len(set); i += 2 {
			good, bad := set[i], set[i+1]
			if good.Expected != Met || bad.Expected != NotMet || good.Criterion != bad.Criterion || good.Subject == bad.Subject || good.Defect != "" {
				t.Fatalf("%q: no pair: %+v %+v", kind, good, bad)
			}
			if !meets(t, good) || meets(t, bad) {
				t.Errorf("%s, %s: %s\nmet by the good one: %t, by the bad one: %t\n%s", good.Type, bad.Defect, good.Criterion, meets(t, good), meets(t, bad), bad.Subject)
			}
			defects[bad.Defect]++
			switch talks := strings.Contains(bad.Subject, "is met") || strings.Contains(bad.Subject, "ignore the criterion") || strings.Contains(bad.Subject, "every criterion"); {
			case talks != (bad.Defect == Injection):
				t.Errorf("%s: talks to its judge: %t\n%s", bad.Defect, talks, bad.Subject)
			case bad.Defect == Polish && (len(bad.Subject) < 700 || len(good.Subject) < 700):
				t.Errorf("polish of %d bytes", len(bad.Subject))
			}
		}
		if kind == "" && len(defects) != 6 {
			t.Errorf("defects %v, want all six", defects)
		}
	}
}

// meets reads a criterion as a person would.
func meets(t *testing.T, s Subject) bool {
	text := strings.Join(strings.Fields(s.Subject), " ")
	switch s.Type {
	case Coverage:
		_, points, _ := strings.Cut(s.Criterion, ": ")
		for _, p := range regexp.MustCompile(`\(\d\) `).Split(points, -1)[1:] {
			if !strings.Contains(text, strings.TrimSuffix(strings.TrimSpace(p), ";")) {
				return false
			}
		}
		return true
	case Numbers:
		m := regexp.MustCompile(`it is (\S+) in "(.*)"$`).FindStringSubmatch(s.Criterion)
		return strings.Contains(text, strings.Replace(m[2], "…", m[1], 1))
	case Constraint:
		word := regexp.MustCompile(`the word (\S+)`).FindStringSubmatch(s.Criterion)[1]
		lines := strings.Split(s.Subject, "\n")
		at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, word) })
		return at >= 0 && (!strings.HasPrefix(s.Criterion, "The last line") || at == len(lines)-1)
	case Substance:
		_, words, _ := strings.Cut(s.Criterion, `"`)
		return strings.Contains(text, strings.TrimSuffix(words, `"`))
	}
	t.Fatalf("type %q", s.Type)
	return false
}

func TestTheSameSeedMakesTheSameSet(t *testing.T) {
	one, _ := Build(nil, Plan{N: 12, Seed: 1})
	two, _ := Build(nil, Plan{N: 12, Seed: 1})
	other, _ := Build(nil, Plan{N: 12, Seed: 2})
	if !slices.Equal(one, two) || slices.Equal(one, other) {
		t.Error("a set does not follow from its seed")
	}
}

func TestTextsOfAUser(t *testing.T) {
	raw, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	set, err := Build([]string{string(raw), "Only this."}, Plan{N: 24, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range set {
		if meets(t, s) != (s.Expected == Met) {
			t.Errorf("%s: %s", s.Expected, s.Criterion)
		}
	}
	for _, c := range []struct{ text, kind, want string }{
		{"Only this.", Coverage, "needs 3 sentences"},
		{"Here are five words, and no number at all.", Numbers, "a number of two digits"},
		{"x", "style", `the type "style"; there are coverage, numbers, constraint, substance`},
	} {
		if _, err := Build([]string{c.text}, Plan{N: 2, Type: c.kind}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.kind, err, c.want)
		}
	}
	if _, err := Build(nil, Plan{N: 1001}); err == nil {
		t.Error("a set of 1001 pairs is taken")
	}
}

func TestFaultsOfASetNameTheirLine(t *testing.T) {
	const good, bad = `{"subject":"s","criterion":"c","expected":"met"}`, `{"subject":"t","criterion":"c","type":"x","expected":"not_met","defect":"d"}`
	set, err := ReadSet(strings.NewReader(good + "\n\n" + bad + "\n"))
	if err != nil || len(set) != 2 || set[1] != (Subject{"t", "c", "x", NotMet, "d"}) {
		t.Errorf("%+v %v", set, err)
	}
	for text, want := range map[string]string{
		"":                              "no subjects",
		good:                            "what a judge misses",
		bad:                             "false alarms",
		good + "\n{":                    "line 2: unexpected EOF",
		good + " " + good:               "line 1: more than one value",
		`{"subject":"s","expected":"x"`: "line 1",
		`{"subject":"s","criterion":"c","expected":"maybe"}`:             `line 1: expected is "maybe"`,
		`{"subject":" ","criterion":"c","expected":"met"}`:               "line 1: subject is empty",
		`{"subject":"s","criterion":"","expected":"met"}`:                "line 1: criterion is empty",
		`{"subject":"s","criterion":"c","expected":"met","defect":"d"}`:  "line 1: a defect is named",
		`{"subject":"s","criterion":"c","expected":"met","exepcted":""}`: `unknown field "exepcted"`,
		strings.Repeat("x", longestLine+1):                               "token too long",
	} {
		if _, err := ReadSet(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}
