package api

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/judges"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// calibration is the built-in workflow that asks judges about subjects of which the answer is known.
const calibration = "calibrate"

// What is kept: of a judge that answered most of the time, and of a type of its own only what rests on some subjects.
const (
	mostFailed  = 0.2
	fewestTyped = 20
)

// KeepCalibration implements the service.
func (j *judgeServer) KeepCalibration(ctx context.Context, r *coordinatorv1.KeepCalibrationRequest) (*coordinatorv1.KeepCalibrationResponse, error) {
	out, err := j.keep(ctx, r.GetRunId())
	return out, apierr.ToStatus(err)
}

func (j *judgeServer) keep(ctx context.Context, id string) (*coordinatorv1.KeepCalibrationResponse, error) {
	v, err := j.s.o.Engine.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	switch {
	case v.Workflow != calibration || !v.BuiltIn:
		return nil, apierr.New(apierr.InvalidArgument, "run %s measured no judges: it is one of %s", v.ID, v.Workflow).WithNext("loopkeeper judges calibrate --judge MODEL")
	case !v.Status.Ended():
		return nil, apierr.New(apierr.Conflict, "run %s goes on: its judges have not answered everything yet", v.ID).
			WithNext("loopkeeper watch "+v.ID, "loopkeeper judges calibrate --run "+v.ID)
	}
	subjects, answers, err := j.answers(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	servers, err := j.servers(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	measured, pairs := judges.Measure(subjects, answers)
	out := &coordinatorv1.KeepCalibrationResponse{}
	var records []judges.Record
	for _, m := range measured {
		if why := refused(m); why != "" {
			if m.Type == measured[0].Type {
				out.Notes = append(out.Notes, why)
			}
			continue
		}
		rec := judges.Record{Measured: m, Prompts: run.JudgePrompts(v.Prompts), Servers: servers[m.Digest], Run: v.ID, Time: v.Ended, Simulated: v.Simulated}
		if rec.Type != measured[0].Type && rec.N() < fewestTyped {
			continue
		}
		for _, p := range pairs {
			if p.Type == m.Type && slices.Contains(p.Judges[:], m.Judge) {
				rec.Pairs = append(rec.Pairs, p)
			}
		}
		records = append(records, rec)
	}
	if len(records) == 0 {
		e := apierr.New(apierr.InvalidArgument, "nothing can be said of any judge of run %s", v.ID)
		for _, n := range out.Notes {
			e.Message += "; " + n
		}
		return nil, e.WithNext("loopkeeper show "+v.ID, "loopkeeper retry "+v.ID)
	}
	if err := j.s.o.Judges.Keep(ctx, records); err != nil {
		return nil, err
	}
	for _, r := range records {
		out.Judges = append(out.Judges, judgeMessage(r, r.Stale(j.s.o.Judges.Now(r.Judge))))
		out.Pairs = append(out.Pairs, pairMessages(r.Judge, r.Pairs)...)
	}
	return out, nil
}

// refused says why a judge's rates are not kept, "" when they are.
func refused(m judges.Measured) string {
	switch {
	case m.Failed.Share() > mostFailed:
		return fmt.Sprintf("%s gave no answer to %d of %d questions, so its rates would mislead", m.Judge, m.Failed.Hits, m.Failed.Of)
	case m.Digest == "":
		return m.Judge + " was never asked"
	case m.Passed.Of == 0 || m.Found.Of == 0:
		return m.Judge + " was not asked about both kinds of subjects"
	default:
		return ""
	}
}

// answers are what a run asked and was answered.
func (j *judgeServer) answers(ctx context.Context, id string) ([]judges.Subject, []judges.Answer, error) {
	pinned, err := j.s.o.Engine.Pinned(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	var in struct {
		Judges   []string         `json:"judges"`
		Subjects []judges.Subject `json:"subjects"`
	}
	if err := json.Unmarshal(pinned.Input, &in); err != nil {
		return nil, nil, apierr.Wrap(err, apierr.InvalidArgument, "read the subjects of run %s", id)
	}
	outputs, err := j.s.o.Engine.Outputs(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	var all []judges.Answer
	for _, judge := range in.Judges {
		i := slices.IndexFunc(outputs, func(o engine.Output) bool { return o.Name == "answers of "+judge })
		if i < 0 {
			continue // it ended before
		}
		var of []judges.Answer
		if err := json.Unmarshal(outputs[i].Value, &of); err != nil {
			return nil, nil, apierr.Wrap(err, apierr.InvalidArgument, "read the answers of %s in run %s", judge, id)
		}
		for n := range of {
			of[n].Judge = judge
		}
		all = append(all, of...)
	}
	if len(all) == 0 {
		return nil, nil, apierr.New(apierr.InvalidArgument, "run %s has no answers: it ended before its judges had given them", id).WithNext("loopkeeper show "+id, "loopkeeper fork "+id)
	}
	return in.Subjects, all, nil
}

// servers are the versions of Ollama that answered in a run, by the model's digest.
func (j *judgeServer) servers(ctx context.Context, id string) (map[string][]string, error) {
	found := map[string]map[string]bool{}
	for e, err := range ledger.All(ctx, j.s.o.Store, id, 0) {
		if err != nil {
			return nil, err
		}
		if e.Kind != "attempt.succeeded" {
			continue
		}
		var p struct {
			Report run.Report `json:"report"`
		}
		if err := json.Unmarshal(e.Payload, &p); err != nil {
			return nil, apierr.Wrap(err, apierr.LedgerCorrupt, "read event %d of run %s", e.Seq, id)
		}
		if p.Report.Ollama == "" {
			continue
		}
		if found[p.Report.Digest] == nil {
			found[p.Report.Digest] = map[string]bool{}
		}
		found[p.Report.Digest][p.Report.Ollama] = true
	}
	out := map[string][]string{}
	for digest, versions := range found {
		out[digest] = slices.SortedFunc(maps.Keys(versions), cmp.Compare[string])
	}
	return out, nil
}
