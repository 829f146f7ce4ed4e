package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loopkeeper/loopkeeper/coordinator/dispatch"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/params"
	"github.com/loopkeeper/loopkeeper/coordinator/schedule"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// Schedules implements coordinatorv1.ScheduleServiceServer.
type Schedules struct {
	coordinatorv1.UnimplementedScheduleServiceServer
	s      *Server
	runner *schedule.Runner
}

// Schedules returns the service for the schedules of r, which submits with Fire.
func (s *Server) Schedules(r *schedule.Runner) *Schedules { return &Schedules{s: s, runner: r} }

// nextShown is how many times AddSchedule says.
const nextShown = 3

// ListSchedules implements the service.
func (x *Schedules) ListSchedules(ctx context.Context, _ *coordinatorv1.ListSchedulesRequest) (*coordinatorv1.ListSchedulesResponse, error) {
	out := &coordinatorv1.ListSchedulesResponse{}
	for _, v := range x.runner.List() {
		m, err := x.message(ctx, v)
		if err != nil {
			return nil, apierr.ToStatus(err)
		}
		out.Schedules = append(out.Schedules, m)
	}
	return out, nil
}

// AddSchedule implements the service.
func (x *Schedules) AddSchedule(ctx context.Context, r *coordinatorv1.AddScheduleRequest) (*coordinatorv1.AddScheduleResponse, error) {
	out, err := x.add(ctx, r)
	return out, apierr.ToStatus(err)
}

func (x *Schedules) add(ctx context.Context, r *coordinatorv1.AddScheduleRequest) (*coordinatorv1.AddScheduleResponse, error) {
	p, builtIn, err := x.s.program(ctx, r.GetNamed(), r.GetBundle())
	if err != nil {
		return nil, err
	}
	spec, err := readSpec(r, p.Name)
	if err != nil {
		return nil, err
	}
	if err := x.checkFolder(&spec, builtIn); err != nil {
		return nil, err
	}
	out := &coordinatorv1.AddScheduleResponse{}
	if out.Notes, err = x.checkWork(ctx, spec, p, builtIn); err != nil {
		return nil, err
	}
	now := time.Now()
	v := schedule.View{Spec: spec, State: schedule.NewState(now)}
	out.Notes = append(out.Notes, notesOf(spec, r.GetBundle() != nil, builtIn)...)
	if !r.GetDryRun() {
		if v, err = x.keep(ctx, spec, p, r); err != nil {
			return nil, err
		}
	}
	for _, t := range spec.Upcoming(v.State, now, nextShown) {
		out.Next = append(out.Next, timestamppb.New(t))
	}
	out.Schedule, err = x.message(ctx, v)
	return out, err
}

// keep makes the schedule. A script of its own is pinned: what it names from then on is exactly that.
func (x *Schedules) keep(ctx context.Context, spec schedule.Spec, p script.Program, r *coordinatorv1.AddScheduleRequest) (v schedule.View, err error) {
	if r.GetBundle() != nil {
		if spec.Workflow, err = x.s.o.Library.Pin(ctx, p); err != nil {
			return v, err
		}
	}
	if r.GetReplace() {
		if err := x.runner.Remove(ctx, spec.Name); err != nil && apierr.CodeOf(err) != apierr.NotFound {
			return v, err
		}
	}
	return x.runner.Add(ctx, spec)
}

// readSpec reads what the user wants and when.
func readSpec(r *coordinatorv1.AddScheduleRequest, workflow string) (spec schedule.Spec, err error) {
	d := json.NewDecoder(bytes.NewReader(orNull(r.GetSpecJson())))
	d.DisallowUnknownFields()
	if err := d.Decode(&spec); err != nil {
		return spec, apierr.New(apierr.InvalidArgument, "the schedule cannot be read: %v", err)
	}
	spec.Name, spec.Workflow = r.GetName(), workflow
	if spec.Input, err = script.Canonical(orNull(r.GetInputJson())); err != nil {
		return spec, apierr.New(apierr.InvalidArgument, "the input is refused: %v", err).WithNext("loopkeeper run WORKFLOW --params  # shows what it takes")
	}
	return schedule.Complete(spec)
}

// checkFolder refuses a folder whose files nobody means. What no call could carry is left alone where files are sent as they are.
func (x *Schedules) checkFolder(spec *schedule.Spec, builtIn bool) error {
	if spec.Watch == nil {
		return nil
	}
	w := *spec.Watch
	if !filepath.IsAbs(w.Folder) {
		return apierr.New(apierr.InvalidArgument, "--watch: %q is not absolute", w.Folder).WithNext("name the folder from the root on, as the coordinator's machine has it")
	}
	w.Folder = filepath.Clean(w.Folder)
	if inside(x.s.o.DataDir, w.Folder) || w.Recursive && inside(w.Folder, x.s.o.DataDir) {
		return apierr.New(apierr.InvalidArgument, "--watch: %s holds loopkeeper's own data: each run would start the next", w.Folder).WithNext("watch another folder")
	}
	if builtIn {
		w.MaxBytes = min(w.MaxBytes, dispatch.BodyLimit)
	}
	spec.Watch = &w
	return nil
}

// inside says whether path is folder or lies in it.
func inside(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// checkWork makes sure that what is to be started could be started now, and says what may hinder it then.
func (x *Schedules) checkWork(ctx context.Context, spec schedule.Spec, p script.Program, builtIn bool) (notes []string, err error) {
	i, err := x.s.describe(ctx, p)
	if err != nil {
		return nil, err
	}
	input := spec.Input
	if spec.Watch != nil {
		some := map[string]any{"ref": ledger.Digest(nil), "name": "a new file", "bytes": 0}
		if input, err = withFiles(i.ParamsSchema, input, []any{some}); err != nil {
			return nil, err
		}
		if _, err := os.Stat(spec.Watch.Folder); err != nil {
			notes = append(notes, fmt.Sprintf("the folder cannot be looked at yet: %v", err))
		}
	}
	if err := params.Check(i.ParamsSchema, input); err != nil {
		return nil, err
	}
	if err := x.s.checkRefs(ctx, spec.Input, builtIn); err != nil {
		return nil, err
	}
	var fits coordinatorv1.SubmitResponse
	if err := x.s.admit(ctx, modelsOf(i.ParamsSchema, spec.Input), builtIn, &fits); err != nil { // the machine that has it may be off by day
		notes = append(notes, apierr.As(err).Message)
	}
	return append(notes, fits.GetNotes()...), nil
}

// notesOf says what a user might expect otherwise.
func notesOf(spec schedule.Spec, bundle, builtIn bool) (notes []string) {
	switch {
	case bundle:
		notes = append(notes, "the script is kept as it is now: editing the file changes nothing")
	case !builtIn:
		notes = append(notes, "each firing takes the workflow that is called "+spec.Workflow+" by then")
	}
	var in any
	if json.Unmarshal(spec.Input, &in) == nil && len(params.Refs(in)) > 0 {
		notes = append(notes, "files in the input are kept as they are now")
	}
	if spec.Reach != schedule.Act {
		notes = append(notes, fmt.Sprintf("%s is kept and shown; a workflow that uses tools is not held to it yet", spec.Reach))
	}
	return notes
}

// UseSchedule implements the service.
func (x *Schedules) UseSchedule(ctx context.Context, r *coordinatorv1.UseScheduleRequest) (*coordinatorv1.UseScheduleResponse, error) {
	out, err := x.use(ctx, r)
	return out, apierr.ToStatus(err)
}

func (x *Schedules) use(ctx context.Context, r *coordinatorv1.UseScheduleRequest) (out *coordinatorv1.UseScheduleResponse, err error) {
	out = &coordinatorv1.UseScheduleResponse{}
	var v schedule.View
	switch r.GetUse() {
	case "pause":
		v, err = x.runner.Pause(ctx, r.GetName(), "a person", "")
	case "resume":
		v, err = x.runner.Resume(ctx, r.GetName())
	case "fire":
		v, out.RunId, err = x.fire(ctx, r.GetName())
	default:
		err = apierr.New(apierr.InvalidArgument, "a schedule cannot be used for %q", r.GetUse()).WithNext("use pause, resume or fire")
	}
	if err != nil {
		return nil, err
	}
	out.Schedule, err = x.message(ctx, v)
	return out, err
}

// fire starts a schedule's workflow now.
func (x *Schedules) fire(ctx context.Context, name string) (v schedule.View, run string, err error) {
	all := x.runner.List()
	i := slices.IndexFunc(all, func(v schedule.View) bool { return v.Spec.Name == name })
	switch {
	case i < 0:
		return v, "", apierr.New(apierr.NotFound, "there is no schedule %q", name).WithNext("loopkeeper schedule list")
	case all[i].Spec.Watch != nil:
		return v, "", apierr.New(apierr.InvalidArgument, "the schedule %s starts for files, and there are no new ones to start it for", name).
			WithNext("put a file into "+all[i].Spec.Watch.Folder, "loopkeeper run with the files that you mean")
	}
	f := all[i].ByHand(time.Now())
	if run, err = x.s.Fire(ctx, all[i].Spec, f); err != nil {
		return v, "", err
	}
	v, err = x.runner.Started(ctx, name, f, run)
	return v, run, err
}

// RemoveSchedule implements the service.
func (x *Schedules) RemoveSchedule(ctx context.Context, r *coordinatorv1.RemoveScheduleRequest) (*coordinatorv1.RemoveScheduleResponse, error) {
	return &coordinatorv1.RemoveScheduleResponse{}, apierr.ToStatus(x.runner.Remove(ctx, r.GetName()))
}

// definedBy says who defined the problem, by level.
var definedBy = map[schedule.Level]string{schedule.L1: "time", schedule.L2: "trigger", schedule.L3: "rule", schedule.L4: "goal"}

// shortPin is what people need of the name of a script that is pinned: enough of its hash to tell it from another.
var shortPin = regexp.MustCompile(`(@[0-9a-f]{12})[0-9a-f]{52}/[0-9a-f]{64}$`)

func (x *Schedules) message(ctx context.Context, v schedule.View) (*coordinatorv1.Schedule, error) {
	spec, err := json.Marshal(v.Spec)
	if err != nil {
		return nil, apierr.Wrap(err, apierr.Internal, "show the schedule %s", v.Spec.Name)
	}
	m := &coordinatorv1.Schedule{Name: v.Spec.Name, Workflow: shortPin.ReplaceAllString(v.Spec.Workflow, "$1"), InputJson: v.Spec.Input, SpecJson: spec, When: when(v.Spec), Paused: v.State.Paused != nil,
		Fired: int64(v.State.Fired), Limit: int64(v.Spec.MaxFirings), DefinedBy: definedBy[v.Spec.Level], Authority: string(v.Spec.Reach), Note: noteOf(v)}
	if next := v.Spec.Upcoming(v.State, time.Now(), 1); len(next) > 0 {
		m.Next = timestamppb.New(next[0])
	}
	switch n := len(v.State.Running); {
	case n > 0:
		m.LastRun = v.State.Running[n-1].Run
	case v.State.Last != nil:
		m.LastRun = v.State.Last.Run
	default:
		return m, nil
	}
	rows, err := x.s.o.Store.Runs(ctx, ledger.RunFilter{Prefix: m.LastRun, Limit: 1})
	if err == nil && len(rows) > 0 {
		m.Last, m.LastState = stamp(rows[0].Created), rows[0].State
	}
	return m, err
}

// when is what a schedule goes by, for people.
func when(s schedule.Spec) string {
	var out string
	switch w := s.Watch; {
	case w != nil:
		out = "files in " + w.Folder
		if w.Pattern != "" {
			out += " that match " + w.Pattern
		}
		if w.Recursive {
			out += ", and in folders below"
		}
	case s.Cron != "":
		out = s.Cron + " " + s.Zone
	default:
		out = "every " + every(time.Duration(s.EverySeconds)*time.Second)
	}
	for i, c := range s.Rule {
		out += []string{" if ", " and "}[min(i, 1)] + c.String()
	}
	if s.Goal != nil {
		out += " until: " + s.Goal.Text
	}
	return out
}

// every is a duration without parts that are zero.
func every(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// noteOf is why a schedule did not fire when it might have.
func noteOf(v schedule.View) string {
	var all []string
	if p := v.State.Paused; p != nil {
		text := "paused by " + p.By
		if p.Why != "" {
			text += ": " + p.Why
		}
		return text
	}
	if n := len(v.State.Notes); n > 0 {
		all = append(all, v.State.Notes[n-1].Text)
	}
	return strings.Join(append(all, v.Reasons...), "; ")
}
