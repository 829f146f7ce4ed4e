package schedule

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"time"

	"github.com/loopkeeper/loopkeeper/proto/apierr"
)

// Spec is what a user wants to happen, and when. Exactly one of Cron, EverySeconds and Watch says when.
type Spec struct {
	Name         string          `json:"name"` // [a-z0-9._-], at most 63
	Cron         string          `json:"cron,omitempty"`
	Zone         string          `json:"zone,omitempty"` // of Cron: a name of the tz database. "": UTC
	EverySeconds int64           `json:"every_seconds,omitempty"`
	Watch        *Watch          `json:"watch,omitempty"`
	Rule         []Condition     `json:"rule,omitempty"` // all must hold, else a firing is left out
	Goal         *Goal           `json:"goal,omitempty"`
	Workflow     string          `json:"workflow"` // what is started
	Input        json.RawMessage `json:"input,omitempty"`
	Overlap      Overlap         `json:"overlap"`               // default: queue for a watched folder, else skip
	CatchUp      CatchUp         `json:"catch_up"`              // default: all for a watched folder, else last
	MaxFirings   int             `json:"max_firings,omitempty"` // 0: no limit
	Level        Level           `json:"level"`                 // who defined the problem; follows from the fields above
	Reach        Reach           `json:"reach"`                 // how far it may go. Default: inform
	By           string          `json:"by,omitempty"`          // who made it
}

// Watch is a folder whose new and changed files start a workflow.
type Watch struct {
	Folder        string `json:"folder"`            // absolute
	Pattern       string `json:"pattern,omitempty"` // of the file's name, such as *.pdf. "": every file
	Recursive     bool   `json:"recursive,omitempty"`
	Existing      bool   `json:"existing,omitempty"` // files that are there in the beginning count as new
	SettleSeconds int64  `json:"settle_seconds"`     // how long a file must stay as it is. Default 10
	PollSeconds   int64  `json:"poll_seconds"`       // between two looks. Default 5
	MaxBytes      int64  `json:"max_bytes"`          // larger files are left alone. Default 1 GiB
}

// Goal is a state of the world that a workflow is to bring about. It counts as reached when a condition of Gap does not hold.
type Goal struct {
	Text string      `json:"text"`
	Gap  []Condition `json:"gap"`
}

// Overlap says what becomes of a firing while a run of the same schedule is under way.
type Overlap string

// The overlap policies.
const (
	Skip   Overlap = "skip"   // it is left out
	Queue  Overlap = "queue"  // it waits for the end; at most one does
	Cancel Overlap = "cancel" // what is under way is cancelled
	Allow  Overlap = "allow"  // both run
)

// CatchUp says what becomes of times that passed, or files that came, while nobody looked.
type CatchUp struct {
	Policy CatchUpPolicy `json:"policy"`
	Most   int           `json:"most,omitempty"` // of All: how many, the newest. Default 10, files 10,000
}

// CatchUpPolicy is the policy of a CatchUp.
type CatchUpPolicy string

// The catch-up policies.
const (
	None CatchUpPolicy = "none" // nothing is made up for
	Last CatchUpPolicy = "last" // the newest
	All  CatchUpPolicy = "all"  // all, up to Most
)

// Level is who defined the problem that a firing works on.
type Level string

// The levels of proactivity.
const (
	L1 Level = "L1" // the user named a time
	L2 Level = "L2" // the user named a trigger
	L3 Level = "L3" // the user named a rule that says when a time or a trigger counts
	L4 Level = "L4" // the user named a goal, and code measures the gap
)

// Reach is how far a firing may go without asking.
type Reach string

// The reaches.
const (
	Inform Reach = "inform" // it may say something
	Advise Reach = "advise" // it may propose something
	Act    Reach = "act"    // it may do something
)

// Bounds and defaults.
const (
	defaultSettle  = 10
	defaultPoll    = 5
	defaultBytes   = 1 << 30
	defaultCatchUp = 10
	mostCatchUp    = 1000
	mostFiles      = 10_000 // of one firing
	longestSeconds = 366 * 24 * 3600
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// Complete fills in the defaults and checks a spec; an error is an apierr.Error that names the flag of `loopkeeper schedule add`.
func Complete(s Spec) (Spec, error) {
	s = s.withDefaults()
	for _, check := range []func() error{s.checkNames, s.checkWhen, s.checkConditions, s.checkPolicies} {
		if err := check(); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s Spec) withDefaults() Spec {
	given := s.CatchUp.Policy != ""
	if s.Watch != nil {
		w := *s.Watch
		w.SettleSeconds, w.PollSeconds, w.MaxBytes = cmp.Or(w.SettleSeconds, defaultSettle), cmp.Or(w.PollSeconds, defaultPoll), cmp.Or(w.MaxBytes, defaultBytes)
		s.Watch = &w
		s.Overlap = cmp.Or(s.Overlap, Queue)
		s.CatchUp.Policy = cmp.Or(s.CatchUp.Policy, All)
	}
	if s.Cron != "" {
		s.Zone = cmp.Or(s.Zone, "UTC")
	}
	s.Overlap, s.CatchUp.Policy, s.Reach = cmp.Or(s.Overlap, Skip), cmp.Or(s.CatchUp.Policy, Last), cmp.Or(s.Reach, Inform)
	if s.CatchUp.Policy == All && s.CatchUp.Most == 0 {
		s.CatchUp.Most = defaultCatchUp
		if s.Watch != nil && !given {
			s.CatchUp.Most = mostFiles
		}
	}
	s.Level = cmp.Or(s.Level, s.level())
	return s
}

// level follows from what the user defined: a level that was only claimed would say nothing.
func (s Spec) level() Level {
	switch {
	case s.Goal != nil:
		return L4
	case len(s.Rule) > 0:
		return L3
	case s.Watch != nil:
		return L2
	default:
		return L1
	}
}

func (s Spec) checkNames() error {
	if !nameForm.MatchString(s.Name) {
		return refuse("name", "%q is no name of a schedule", s.Name).WithNext("use a-z, 0-9, dot, dash and underscore, at most 63, such as nightly-review")
	}
	if s.Workflow == "" {
		return refuse("--workflow", "it does not say what to start").WithNext("loopkeeper workflows")
	}
	if s.Input != nil && !json.Valid(s.Input) {
		return refuse("--input", "it is not JSON")
	}
	return nil
}

func (s Spec) checkWhen() error {
	given := 0
	for _, is := range []bool{s.Cron != "", s.EverySeconds != 0, s.Watch != nil} {
		if is {
			given++
		}
	}
	if given != 1 {
		return refuse("--cron, --every, --watch", "exactly one of them says when it starts, and %d are given", given).
			WithNext(s.example("--cron '30 2 * * mon-fri'"), s.example("--every 2h"), s.example("--watch FOLDER"))
	}
	if s.EverySeconds < 0 || s.EverySeconds > longestSeconds {
		return refuse("--every", "%d seconds are not from 1 to %d", s.EverySeconds, longestSeconds)
	}
	if s.Cron == "" && s.Zone != "" {
		return refuse("--zone", "only the times of --cron have a time zone").WithNext(s.example("--cron '30 2 * * *' --zone "+s.Zone), "leave out --zone")
	}
	if s.Zone == "Local" {
		return refuse("--zone", "Local would mean another time when the schedule moves").WithNext("name the zone, such as Europe/Berlin")
	}
	if _, err := s.times(time.Time{}); err != nil {
		return apierr.New(apierr.InvalidArgument, "schedule %s: %v", s.Name, err).WithNext("five fields: minute hour day month weekday, such as \"30 2 * * mon-fri\"")
	}
	return s.checkWatch()
}

func (s Spec) checkWatch() error {
	w := s.Watch
	if w == nil {
		return nil
	}
	if w.Folder == "" {
		return refuse("--watch", "it does not name a folder")
	}
	if _, err := path.Match(w.Pattern, ""); err != nil {
		return refuse("--pattern", "%q is no pattern", w.Pattern).WithNext("use * and ?, such as *.pdf")
	}
	for _, n := range []struct {
		field string
		value int64
	}{{"--settle", w.SettleSeconds}, {"watch.poll_seconds", w.PollSeconds}} {
		if n.value < 1 || n.value > longestSeconds {
			return refuse(n.field, "%d is not from 1 to %d", n.value, longestSeconds)
		}
	}
	if w.MaxBytes < 1 {
		return refuse("watch.max_bytes", "%d is no size", w.MaxBytes)
	}
	if s.Overlap == Skip || s.Overlap == Cancel {
		return refuse("--overlap", "%s would leave files undone without a word; with queue they wait together for the end of the run", s.Overlap)
	}
	return nil
}

func (s Spec) checkConditions() error {
	if s.Goal != nil && (s.Goal.Text == "" || len(s.Goal.Gap) == 0) {
		return refuse("--goal", "a goal needs --goal, a text, and --gap, which code can measure, such as --gap 'last_failures > 0', else nobody could say when to stop")
	}
	if want := s.level(); s.Level != want {
		return refuse("level", "%s is not what is defined here, that is %s: %s", s.Level, want, want.Means())
	}
	conditions := s.conditions()
	for _, c := range conditions {
		if err := c.check(s.Watch != nil); err != nil {
			return err
		}
	}
	return nil
}

func (s Spec) checkPolicies() error {
	most := mostCatchUp
	if s.Watch != nil {
		most = mostFiles
	}
	switch {
	case !slices.Contains([]Overlap{Skip, Queue, Cancel, Allow}, s.Overlap):
		return refuse("--overlap", "%q is none of skip, queue, cancel, allow", s.Overlap)
	case !slices.Contains([]CatchUpPolicy{None, Last, All}, s.CatchUp.Policy):
		return refuse("--catch-up", "%q is none of none, last, all and a number", s.CatchUp.Policy)
	case s.CatchUp.Most < 0 || s.CatchUp.Most > most:
		return refuse("--catch-up", "%d is not from 1 to %d", s.CatchUp.Most, most)
	case s.CatchUp.Most > 0 && s.CatchUp.Policy != All:
		return refuse("--catch-up", "only the policy all has a limit")
	case s.MaxFirings < 0:
		return refuse("--limit", "%d is no number of firings", s.MaxFirings)
	case !slices.Contains([]Reach{Inform, Advise, Act}, s.Reach):
		return refuse("--reach", "%q is none of inform, advise, act", s.Reach)
	}
	return nil
}

// Means says what a level is, for people.
func (l Level) Means() string {
	return map[Level]string{
		L1: "the user named a time", L2: "the user named a trigger", L3: "the user named a rule", L4: "the user named a goal with a gap that code measures",
	}[l]
}

// Means says what a reach is, for people.
func (r Reach) Means() string {
	return map[Reach]string{Inform: "it may inform", Advise: "it may inform and propose", Act: "it may act"}[r]
}

// example is a command that makes the schedule, with other words about when.
func (s Spec) example(when string) string {
	return fmt.Sprintf("loopkeeper schedule add %s --workflow %s %s", s.Name, s.Workflow, when)
}

// refuse is an error about a flag, or about the name.
func refuse(field, format string, args ...any) *apierr.Error {
	return apierr.New(apierr.InvalidArgument, field+": "+format, args...)
}
