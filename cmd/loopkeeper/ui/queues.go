package ui

import (
	"fmt"
	"strings"
	"time"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// waitingLines is what waits, by model, with what for.
func waitingLines(s Style, queues []*coordinatorv1.ModelQueue) string {
	if len(queues) == 0 {
		return ""
	}
	var each []string
	for _, q := range queues {
		each = append(each, fmt.Sprintf("%s for %s (%s)", Plural(q.GetWaiting(), "item", "items"), Line(q.GetModel()), WaitText(q.GetWaitingFor())))
	}
	return s.hanging("Waiting: ", "         ", strings.Join(each, ", ")+".")
}

// resourceTable is how the limited resources are used.
func resourceTable(s Style, list []*coordinatorv1.ResourceUse) string {
	if len(list) == 0 {
		return ""
	}
	t := Table{Width: s.Width, Columns: Columns("/RESOURCE", ">IN USE", ">CAP", ">RATE", ">NEXT START", ">WAITING")}
	for _, r := range list {
		most, rate, next := "-", "-", "now"
		if r.GetCap() > 0 {
			most = Count(int64(r.GetCap()))
			if r.GetInUse() >= r.GetCap() {
				next = "when one ends"
			}
		}
		if r.GetRate() > 0 {
			rate = fmt.Sprintf("%g/s", r.GetRate())
		}
		if d := time.Duration(r.GetNextNanos()); d > 0 {
			next = "in " + Duration(d)
		}
		t.Add(Line(r.GetName()), Count(int64(r.GetInUse())), most, rate, next, Count(r.GetWaiting()))
	}
	return t.String()
}

// Notes are sentences, each in lines that fit.
func Notes(s Style, notes []string) string {
	var b strings.Builder
	for _, n := range notes {
		b.WriteString(s.hanging("", "  ", Line(n)+"."))
	}
	return b.String()
}

// Findings are what a person should know, each with what helps.
func Findings(s Style, list []*coordinatorv1.Finding) string {
	var b strings.Builder
	for _, f := range list {
		b.WriteString(s.Finding(s.bad(), f.GetText(), f.GetNext()...))
	}
	return b.String()
}

// Suggestions are downloads that would pay.
func Suggestions(s Style, list []*coordinatorv1.Suggestion) string {
	var b strings.Builder
	for _, one := range list {
		text, next := fmt.Sprintf("%s on %s would pay: %s", one.GetModel(), one.GetNode(), one.GetWhy()), one.GetCommand()
		if one.GetUnderWay() {
			text, next = text+"; it is being downloaded", ""
		}
		b.WriteString(s.Finding(s.Mark("pending"), text, next))
	}
	return b.String()
}
