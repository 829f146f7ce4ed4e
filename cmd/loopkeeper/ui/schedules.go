package ui

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// levels name who defined a schedule's problem, as the design counts them.
var levels = map[string]string{"time": "L1", "trigger": "L2", "rule": "L3", "goal": "L4"}

// reaches say how far what a schedule starts may go.
var reaches = map[string]string{"inform": "it may inform", "advise": "it may inform and propose", "act": "it may act"}

// Schedules is the table of schedules.
func Schedules(s Style, all []*coordinatorv1.Schedule, now time.Time) string {
	if len(all) == 0 {
		return "No schedules yet.\nNext: loopkeeper schedule add NAME --workflow WORKFLOW --cron '30 2 * * *' --zone Europe/Berlin\n"
	}
	t := Table{Width: s.Width, Columns: Columns("SCHEDULE", "/WORKFLOW", "~WHEN", "NEXT", "LAST", ">FIRED", "BY", "MAY", "~")}
	for _, c := range all {
		next := NextFiring(c, now)
		switch {
		case c.GetPaused():
			next = "paused"
		case next == "":
			next = "-"
		}
		t.Add(c.GetName(), Line(c.GetWorkflow()), Line(c.GetWhen()), next, lastOf(s, c, now), firedOf(c), levels[c.GetDefinedBy()]+" "+c.GetDefinedBy(), c.GetAuthority(), Line(c.GetNote()))
	}
	return t.String()
}

// NextFiring is when a schedule starts something next, on the clock of its zone and with that zone's name; "" when that is not known, as of a
// watched folder.
func NextFiring(c *coordinatorv1.Schedule, now time.Time) string {
	if c.GetNext() == nil {
		return ""
	}
	spec := specOf(c)
	t, at := c.GetNext().AsTime(), zoneOf(spec.Zone)
	text := clockIn(t, now, at)
	if spec.EverySeconds%60 != 0 && len(text) == len("15:04") {
		text = t.In(at).Format(time.TimeOnly)
	}
	return text + t.In(at).Format(" MST")
}

// zoneOf is a zone by its name, this machine's where there is none.
func zoneOf(name string) *time.Location {
	if z, err := time.LoadLocation(name); err == nil && name != "" {
		return z
	}
	return time.Local
}

func lastOf(s Style, c *coordinatorv1.Schedule, now time.Time) string {
	if c.GetLast() == nil {
		return "-"
	}
	at := zoneOf(specOf(c).Zone)
	return s.State(c.GetLastState()) + " " + clockIn(c.GetLast().AsTime(), now, at) + c.GetLast().AsTime().In(at).Format(" MST")
}

func firedOf(c *coordinatorv1.Schedule) string {
	if c.GetLimit() > 0 {
		return fmt.Sprintf("%d of %d", c.GetFired(), c.GetLimit())
	}
	return fmt.Sprint(c.GetFired())
}

// scheduleSpec is the part of a spec that is shown, see docs/schedules.md.
type scheduleSpec struct {
	Zone         string `json:"zone"`
	Overlap      string `json:"overlap"`
	EverySeconds int64  `json:"every_seconds"`
	CatchUp      struct {
		Policy string `json:"policy"`
		Most   int    `json:"most"`
	} `json:"catch_up"`
	Goal *struct {
		Text string `json:"text"`
	} `json:"goal"`
}

func specOf(c *coordinatorv1.Schedule) (spec scheduleSpec) {
	_ = json.Unmarshal(c.GetSpecJson(), &spec) // what it does not say is not shown
	return spec
}

// Schedule is one schedule in full, with the times to come.
func Schedule(s Style, c *coordinatorv1.Schedule, next []*timestamppb.Timestamp, now time.Time) string {
	spec := specOf(c)
	catchUp := spec.CatchUp.Policy
	if spec.CatchUp.Most > 0 {
		catchUp += fmt.Sprintf(" up to %d", spec.CatchUp.Most)
	}
	if len(next) == 0 && c.GetNext() != nil {
		next = []*timestamppb.Timestamp{c.GetNext()}
	}
	var b strings.Builder
	b.WriteString(s.headline([]string{c.GetName(), "starts " + Line(c.GetWorkflow()), Line(c.GetWhen())}))
	last := ""
	if c.GetLast() != nil {
		last = c.GetLastRun() + " " + lastOf(s, c, now)
	}
	for _, p := range [][2]string{
		{"next", times(next, spec.Zone, spec.EverySeconds%60 != 0)},
		{"last", last},
		{"fired", firedOf(c)},
		{"by", levels[c.GetDefinedBy()] + ": the user named a " + c.GetDefinedBy()},
		{"may", c.GetAuthority() + ": " + reaches[c.GetAuthority()]},
		{"overlap", spec.Overlap + ", of what was missed: " + catchUp},
		{"input", string(c.GetInputJson())},
		{"note", Line(c.GetNote())},
	} {
		b.WriteString(s.fact(p[0], p[1]))
	}
	return b.String()
}

// times are times as the clock of a zone shows them.
func times(all []*timestamppb.Timestamp, zone string, seconds bool) string {
	form := "Mon 2006-01-02 15:04 MST"
	if seconds {
		form = "Mon 2006-01-02 15:04:05 MST"
	}
	at := zoneOf(zone)
	var out []string
	for _, t := range all {
		out = append(out, t.AsTime().In(at).Format(form))
	}
	return strings.Join(out, ", ")
}
