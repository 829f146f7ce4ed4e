package relay

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The marks around the short table, which the README of a project can show.
const (
	TableBegins = "<!-- loop: written by make bench-loop -->\n"
	TableEnds   = "<!-- /loop -->\n"
)

// Page is the whole result in Markdown. made says how it came about; more, which may be empty, follows.
func (s Summary) Page(made, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The loop in code, and the loop in a model\n\n%s\n\n%s\n", made, s.introduction())
	fmt.Fprintf(&b, "## Tasks that ended well\n\n%s%s%s\n", TableBegins, s.Short(), TableEnds)
	b.WriteString("In brackets the 95 % interval (Wilson). *if independent* is what would be left if each call failed for itself, as often as at the smallest size: pⁿ.\n\n")
	b.WriteString(s.losses())
	fmt.Fprintf(&b, "\n## Pairs\n\nThe same tasks and seeds. *won* are those that only the first arm ended well, *lost* those that only the second did; p is McNemar's, exact, two-sided.\n\n%s", s.pairTable())
	fmt.Fprintf(&b, "\n## What went wrong\n\n%s\n%s", legend, s.metrics())
	fmt.Fprintf(&b, "\n## What it took\n\nOf one run, the mean. A plan is one call, with the tokens of both its turns. Seconds are by the wall: other tasks at the same time and pauses before a second try count. All arms have the same model and the same context of %d tokens, and turns of at most %d tokens.\n\n%s", s.Context, turnTokens, s.cost())
	fmt.Fprintf(&b, "\n## What code sent back\n\nOf the arms with the loop in code: calls that failed and were tried again, by kind; `argument` was refused by a check of the workflow.\n\n%s", s.failures())
	fmt.Fprintf(&b, "\n## By family\n\n%s\n%s", families, s.byFamily())
	b.WriteString(more)
	return wrapped(b.String())
}

// lineWidth is where prose of a page is broken.
const lineWidth = 140

// wrapped breaks the lines of prose; tables, lists and marks stay as they are.
func wrapped(page string) string {
	var out []string
	for _, line := range strings.Split(page, "\n") {
		for len(line) > lineWidth && !strings.HasPrefix(line, "|") {
			at := strings.LastIndex(line[:lineWidth], " ")
			if at <= 0 {
				break
			}
			out, line = append(out, line[:at]), line[at+1:]
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

const legend = "Of the required calls: *dropped* were never made, *duplicated* were made again without need, *hallucinated* were asked for by nobody, *fabricated* are reported numbers that " +
	"nobody said. Of the turns: *printed* as text, *empty*. Of the runs: *premature* ends with calls left, *no end* before the cap, *early* calls before their argument existed, *poisoned*. " +
	"In brackets the 95 % interval: runs drawn again, and Wilson's for shares of runs. An arm whose loop is code has no turns: n/a. " +
	"One fault can entail others: in a chain a dropped call makes the next argument wrong and early, and a third turn without a call ends the run.\n"

const families = "F names n workers to ask; C is a chain, each argument the number before; D a root, a fan with a busy worker, and a join; B branches by numbers; W has workers who refuse and name a " +
	"substitute; P has replies that talk to the reader; Z books numbers on accounts and asks for the last state.\n"

func (s Summary) introduction() string {
	text := fmt.Sprintf("Workers that are code give numbers nobody can guess. A task says whom to ask and what to report; the workers' own log says what was done. %d tasks per family and size, "+
		"families %s, %d %s of each, model %s. The arms do the same tasks with the same model and the same goal text:\n\n", s.Tasks, join(s.Families), s.Tries, plural(s.Tries, "try", "tries"), s.Model)
	for _, a := range s.Arms {
		text += fmt.Sprintf("- **%s**: %s\n", a, a.About())
	}
	return text + "\nB against A is what the product does for this model; D against C is what keeping the books alone does; D against B is what is lost in planning. Where code keeps the loop, a step's " +
		"argument is one piece of work for the model, with a schema and a check by code; code makes the call, reads the number and **makes the report of what was recorded**: that is the product's point, " +
		"and so those arms cannot make a report up. A model that keeps the loop is nudged twice at most, and ended after 3n + 5 turns.\n"
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func join[T any](all []T) string {
	var out []string
	for _, a := range all {
		out = append(out, fmt.Sprint(a))
	}
	return strings.Join(out, ", ")
}

// Short is the table of successes, an arm a row.
func (s Summary) Short() string {
	head := "arm"
	if s.Simulated {
		head += " (**simulated**)"
	}
	b := &strings.Builder{}
	fmt.Fprintf(b, "| %s |", head)
	for _, size := range s.Sizes {
		fmt.Fprintf(b, " n = %d |", size)
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(s.Sizes)) + "\n")
	for _, arm := range s.Arms {
		var rates, lines []string
		for _, size := range s.Sizes {
			c := s.find(arm, size)
			rates = append(rates, fmt.Sprintf("%s of %d %s", percent(c.Success.Rate), c.Runs, c.Success.bounds()))
			lines = append(lines, percent(c.Independent))
		}
		fmt.Fprintf(b, "| %s %s | %s |\n", arm, arm.About(), strings.Join(rates, " | "))
		if !arm.ByCode() && len(s.Sizes) > 1 {
			fmt.Fprintf(b, "| %s if independent | %s |\n", arm, strings.Join(lines, " | "))
		}
	}
	return b.String()
}

func (s Summary) find(arm Arm, size int) Cell {
	for _, c := range s.BySize {
		if c.Arm == arm && c.Size == size {
			return c
		}
	}
	return Cell{Arm: arm, Size: size, Independent: math.NaN(), Success: Interval{Rate: math.NaN(), High: 1}}
}

// losses says where an arm with the loop in code did not end everything well.
func (s Summary) losses() string {
	var all []string
	for _, c := range s.ByFamily {
		if c.Arm.ByCode() && c.Succeeded < c.Runs {
			all = append(all, fmt.Sprintf("%s %s n = %d: %d of %d", c.Arm, c.Family, c.Size, c.Succeeded, c.Runs))
		}
	}
	if all == nil {
		return "The arms with the loop in code ended every task of every family well.\n"
	}
	return "The arms with the loop in code did not end all tasks well in: " + strings.Join(all, "; ") + ". All other cells: every task.\n"
}

func (s Summary) pairTable() string {
	b := &strings.Builder{}
	b.WriteString("| arms | n | both | won | lost | neither | p |\n|---|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range s.Pairs {
		size := fmt.Sprint(p.Size)
		if p.Size == 0 {
			size = "all"
		}
		fmt.Fprintf(b, "| %s against %s | %s | %d | %d | %d | %d | %.2g |\n", p.First, p.Second, size, p.Both, p.Won, p.Lost, p.None, p.P)
	}
	return b.String()
}

func (s Summary) metrics() string {
	b := &strings.Builder{}
	b.WriteString("| arm | n | dropped | duplicated | hallucinated | fabricated | printed | empty | premature | no end | early | poisoned |\n|---|--:|" + strings.Repeat("--:|", 10) + "\n")
	for _, c := range s.BySize {
		fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", c.Arm, c.Size, show(&c.Dropped), show(&c.Duplicated), show(&c.Hallucinated), show(&c.Fabricated),
			show(c.Printed), show(c.Empty), show(&c.Premature), show(&c.NoEnd), show(&c.Early), show(&c.Poisoned))
	}
	return b.String()
}

func (s Summary) cost() string {
	b := &strings.Builder{}
	b.WriteString("| arm | n | calls of the model | nudges | prompt tokens | generated tokens | prefill ms | seconds |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, c := range s.BySize {
		n := float64(c.Runs)
		fmt.Fprintf(b, "| %s | %d | %.1f | %.2f | %.0f | %.0f | %.0f | %.1f |\n", c.Arm, c.Size, float64(c.Cost.Calls)/n, c.Nudged, float64(c.Cost.PromptTokens)/n, float64(c.Cost.OutputTokens)/n,
			c.Cost.PrefillMS, c.Cost.Seconds)
	}
	return b.String()
}

func (s Summary) failures() string {
	b := &strings.Builder{}
	b.WriteString("| arm | n | what | times | runs without an outcome |\n|---|--:|---|--:|--:|\n")
	for _, c := range s.BySize {
		if !c.Arm.ByCode() {
			continue
		}
		kinds := slices.Sorted(maps.Keys(c.Failures))
		if len(kinds) == 0 {
			fmt.Fprintf(b, "| %s | %d | nothing | 0 | %d |\n", c.Arm, c.Size, c.Broken)
		}
		for _, kind := range kinds {
			fmt.Fprintf(b, "| %s | %d | %s | %d | %d |\n", c.Arm, c.Size, kind, c.Failures[kind], c.Broken)
		}
	}
	return b.String()
}

// byFamily shows every cell, the losses too.
func (s Summary) byFamily() string {
	b := &strings.Builder{}
	b.WriteString("| arm | n |")
	for _, f := range s.Families {
		fmt.Fprintf(b, " %s |", f)
	}
	five := slices.ContainsFunc(s.BySize, func(c Cell) bool { return c.PassAll != nil })
	if five {
		b.WriteString(" all five tries |")
	}
	b.WriteString("\n|---|--:|" + strings.Repeat("--:|", len(s.Families)))
	if five {
		b.WriteString("--:|")
	}
	b.WriteString("\n")
	for _, arm := range s.Arms {
		for _, size := range s.Sizes {
			fmt.Fprintf(b, "| %s | %d |", arm, size)
			for _, f := range s.Families {
				at := slices.IndexFunc(s.ByFamily, func(c Cell) bool { return c.Arm == arm && c.Size == size && c.Family == f })
				if at < 0 {
					b.WriteString(" – |")
					continue
				}
				fmt.Fprintf(b, " %d of %d |", s.ByFamily[at].Succeeded, s.ByFamily[at].Runs)
			}
			if five {
				if c := s.find(arm, size); c.PassAll != nil {
					fmt.Fprintf(b, " %s |", percent(*c.PassAll))
				} else {
					b.WriteString(" – |")
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

func show(i *Interval) string {
	if i == nil {
		return "n/a"
	}
	if i.Rate == 0 {
		return "0"
	}
	return fmt.Sprintf("%.1f %s", 100*i.Rate, i.bounds())
}

// bounds is the interval in percent.
func (i Interval) bounds() string { return fmt.Sprintf("[%.0f–%.0f]", 100*i.Low, 100*i.High) }

func percent(rate float64) string {
	if math.IsNaN(rate) {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*rate)
}

// Text is the result for a terminal: the tables that matter, in the same form as on the page.
func (s Summary) Text() string {
	return s.Short() + "\n" + s.losses() + "\n" + s.pairTable() + "\n" + s.metrics() + "\n" + s.cost() + "\n" + s.failures() + "\n" + s.byFamily()
}
