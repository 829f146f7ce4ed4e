package ui

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loopkeeper/loopkeeper/coordinator/judges"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Judges is the table of what is known of judges, and what of it no longer holds. A rate is shown with its 95 % interval.
func Judges(s Style, list []*coordinatorv1.Judge, now time.Time) string {
	t := Table{Width: s.Width, Columns: Columns("/JUDGE", "TYPE", "GATE", ">GOOD PASSED", ">DEFECTS FOUND", ">CANNOT TELL", ">LINES HOLD", ">FLIPS", ">SAME AGAIN", "SUBJECTS", "WHEN", "~")}
	var notes []string
	for _, j := range list {
		note := strings.TrimPrefix(Simulated(j.GetSimulated()), ", ")
		if j.GetStale() != "" {
			note = strings.TrimSpace(note + " stale: " + Line(j.GetStale()))
		}
		kind := j.GetType()
		if kind == "" {
			kind = "any"
		}
		t.Add(Line(j.GetModel()), Line(kind), gate(j), interval(j.GetPassed()), interval(j.GetFound()), percent(j.GetAbstained()), percent(j.GetLines()),
			percent(j.GetFlipped()), percent(j.GetSame()), fmt.Sprintf("%d: ±%.2f", j.GetSubjects(), j.GetMargin()), Clock(j.GetTime().AsTime(), now), note)
		if why := advice(j); why != "" {
			notes = append(notes, Line(j.GetModel())+": "+why)
		}
	}
	out := t.String()
	for _, n := range notes {
		out += n + "\n"
	}
	return out
}

func gate(j *coordinatorv1.Judge) string {
	if j.GetStale() != "" {
		return "none"
	}
	return j.GetGate()
}

// advice says why a judge's word is only advice, "" where it is more.
func advice(j *coordinatorv1.Judge) string {
	if j.GetStale() != "" || j.GetGate() != "advisory" {
		return ""
	}
	var why []string
	if part(j.GetPassed()) < 0.85 {
		why = append(why, "sends nothing back alone: of 100 good ones it would refuse "+hundredths(1-part(j.GetPassed())))
	}
	if part(j.GetFound()) < 0.8 {
		why = append(why, "its \"met\" counts for nothing: of 100 defects it would miss "+hundredths(1-part(j.GetFound())))
	}
	return strings.Join(why, ", and ")
}

func hundredths(share float64) string { return fmt.Sprint(int(math.Round(share * 100))) }

func part(r *coordinatorv1.Rate) float64 {
	return judges.Rate{Hits: int(r.GetHits()), Of: int(r.GetOf())}.Share()
}

// percent is a rate in percent, "-" where nothing is known.
func percent(r *coordinatorv1.Rate) string {
	if r.GetOf() == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*part(r))
}

// interval is a rate with where the true one is likely to be.
func interval(r *coordinatorv1.Rate) string {
	if r.GetOf() == 0 {
		return "-"
	}
	return fmt.Sprintf("%d/%d (%.2f-%.2f)", r.GetHits(), r.GetOf(), r.GetLow(), r.GetHigh())
}

// Defects says which defects each judge found.
func Defects(s Style, list []*coordinatorv1.Judge) string {
	kinds := map[string]bool{}
	for _, j := range list {
		for kind := range j.GetDefects() {
			kinds[kind] = true
		}
	}
	if len(kinds) == 0 {
		return ""
	}
	var shown []*coordinatorv1.Judge
	heads := []string{"/DEFECT"}
	for _, j := range list {
		if j.GetType() == list[0].GetType() {
			shown, heads = append(shown, j), append(heads, ">FOUND BY "+Line(j.GetModel()))
		}
	}
	t := Table{Width: s.Width, Columns: Columns(heads...)}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		row := []string{Line(strings.ReplaceAll(kind, "_", " "))}
		for _, j := range shown {
			r := j.GetDefects()[kind]
			row = append(row, fmt.Sprintf("%d/%d", r.GetHits(), r.GetOf()))
		}
		t.Add(row...)
	}
	return "\n" + t.String()
}

// JudgePairs says what judges miss together, which no panel of them sees.
func JudgePairs(s Style, pairs []*coordinatorv1.JudgePair) string {
	if len(pairs) == 0 {
		return ""
	}
	t := Table{Width: s.Width, Columns: Columns("/TOGETHER", "/", "TYPE", ">MISSED BY BOTH", ">IF INDEPENDENT")}
	for _, p := range pairs {
		kind := p.GetType()
		if kind == "" {
			kind = "any"
		}
		t.Add(Line(p.GetOne()), Line(p.GetTwo()), Line(kind), interval(p.GetMissed()), fmt.Sprintf("%.0f%%", 100*p.GetAlone()))
	}
	return "\n" + t.String()
}
