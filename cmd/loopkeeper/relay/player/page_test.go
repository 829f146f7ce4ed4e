package player_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay"
	"github.com/loopkeeper/loopkeeper/cmd/loopkeeper/relay/player"
)

var (
	page   = flag.String("page", "", "play the whole benchmark and write this page")
	readme = "../../../../README.md"
	made   = "../../../../docs/loop-benchmark.md"
)

// how the page was made, before its tables.
func how() string {
	u := player.Usual
	return fmt.Sprintf("Written by `make bench-loop`; do not edit. **All of this is simulated: a program plays the model**, with faults of stated rates, and the numbers say nothing about any model. "+
		"They show that the benchmark counts right, and what such faults cost in a loop that a model keeps and in one that code keeps. `loopkeeper bench loop --model MODEL` measures your own.\n\n"+
		"The player drops %.0f %% of the calls, makes %.0f %% twice, invents %.0f %% of the numbers of its report; %.0f %% of its turns print the call as text, %.0f %% are empty. Where code keeps the loop, "+
		"%.0f %% of its plans break a rule that code checks, %.0f %% of its answers break their format, and %.0f %% of the arguments have a number that nobody said. It plays arms A and C alike, does not follow planted instructions, "+
		"and makes no plan that is wrong within the rules: so D against B shows only the cost of repairs, and the arms with the loop in code look as good as they can.",
		100*u.Drop, 100*u.Duplicate, 100*u.Invent, 100*u.Text, 100*u.Empty, 100*u.BadPlan, 100*u.Schema, 100*u.Argument)
}

// TestPage plays everything and writes the page and the README's block; it is what make bench-loop runs.
func TestPage(t *testing.T) {
	if *page == "" {
		t.Skip("make bench-loop")
	}
	o := relay.Options{Model: model, Sizes: []int{3, 5, 8, 20}, Tasks: 20, Tries: 1}
	r := play(t, player.Usual, o)
	s := relay.Sum(o, r)
	if err := os.WriteFile(*page, []byte(s.Page(how(), judged(t))), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	if before, after, ok := around(string(text)); ok {
		if err := os.WriteFile(readme, []byte(before+s.Short()+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// judged is the page's part about judges.
func judged(t *testing.T) string {
	o := relay.Options{Tasks: 60}
	set, err := relay.Subjects(relay.Reports(o.Tasks, 1), o.Tasks)
	if err != nil {
		t.Fatal(err)
	}
	u := player.Usual
	track, err := relay.Judges(t.Context(), seat(t, player.New(u, nil, set), o), false)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("\n## What a judge's word is worth\n\nThe judge track: reports of what workers said, half of them with one defect that code has put in, each asked about in both orders of the possible answers. "+
		"**Simulated, too**: the player takes %.0f %% of the defects for met, %.0f %% of the good ones for not met, abstains from %.0f %% of both, and answers anew when the order is another. "+
		"`loopkeeper bench judge --model MODEL` measures your own, with `--own` on reports that it wrote itself.\n\n%s", 100*u.Miss, 100*u.Alarm, 100*u.Abstain, track.Text())
}

// around is what stands before and after the table of a text.
func around(text string) (before, after string, ok bool) {
	before, rest, begins := strings.Cut(text, relay.TableBegins)
	_, after, ends := strings.Cut(rest, relay.TableEnds)
	return before + relay.TableBegins, relay.TableEnds + after, begins && ends
}

// The README shows the table of the page.
func TestReadmeShowsThePage(t *testing.T) {
	table := func(path string) string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		before, after, ok := around(string(text))
		if !ok {
			t.Fatalf("%s has no place for the table", path)
		}
		return strings.TrimSuffix(strings.TrimPrefix(string(text), before), after)
	}
	if shown, want := table(readme), table(made); shown != want {
		t.Errorf("the README shows another table than the page: make bench-loop\n%s", want)
	}
}
