package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// ListWaits implements the service.
func (s *Server) ListWaits(ctx context.Context, r *coordinatorv1.ListWaitsRequest) (*coordinatorv1.ListWaitsResponse, error) {
	waits, err := s.o.Engine.Waits(ctx, r.GetRunId())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out := &coordinatorv1.ListWaitsResponse{}
	for _, w := range waits {
		out.Waits = append(out.Waits, waitMessage(w))
	}
	return out, nil
}

func waitMessage(w engine.Wait) *coordinatorv1.Wait {
	m := &coordinatorv1.Wait{RunId: w.Run, Workflow: w.Workflow, Step: strconv.Itoa(w.Step), Item: int32(w.Item), Kind: w.Kind, Label: w.Label, Title: w.Title,
		Text: w.Text, Will: w.Will, Choices: w.Choices, SchemaJson: w.Schema, Since: stamp(w.Since), Until: stamp(w.Until), OnTimeoutJson: w.OnTimeout}
	for _, body := range w.Show {
		m.ShowJson = append(m.ShowJson, body)
	}
	return m
}

// AnswerWait implements the service.
func (s *Server) AnswerWait(ctx context.Context, r *coordinatorv1.AnswerWaitRequest) (*coordinatorv1.AnswerWaitResponse, error) {
	out, err := s.answerWait(ctx, r)
	return out, apierr.ToStatus(err)
}

func (s *Server) answerWait(ctx context.Context, r *coordinatorv1.AnswerWaitRequest) (*coordinatorv1.AnswerWaitResponse, error) {
	w, err := s.asked(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := fits(w, r); err != nil {
		return nil, err
	}
	v, err := s.o.Engine.Settle(ctx, w.Run, w.Step, w.Item, engine.Answer{Outcome: r.GetOutcome(), Value: value(r.GetAnswerJson()), Comment: r.GetComment(), By: r.GetBy()})
	if err != nil {
		return nil, err
	}
	out := &coordinatorv1.AnswerWaitResponse{Run: runMessage(v), Wait: waitMessage(w)}
	if v.Status == run.Suspended {
		out.Notes = append(out.Notes, fmt.Sprintf("run %s is suspended: the answer is kept, and counts once it goes on: loopkeeper resume %s", v.ID, v.ID))
	}
	return out, nil
}

func value(b []byte) json.RawMessage {
	if len(b) == 0 {
		return nil
	}
	return b
}

// asked finds the step that an answer is for: the one that it names, else the only one that waits.
func (s *Server) asked(ctx context.Context, r *coordinatorv1.AnswerWaitRequest) (w engine.Wait, err error) {
	step, err := position(r.GetStep())
	if err != nil {
		return w, err
	}
	waits, err := s.o.Engine.Waits(ctx, r.GetRunId())
	if err != nil {
		return w, err
	}
	inbox := "loopkeeper approvals " + r.GetRunId()
	switch {
	case step < 0 && len(waits) == 0:
		return w, apierr.New(apierr.Conflict, "nothing in run %s waits for a person", r.GetRunId()).WithNext("loopkeeper show "+r.GetRunId(), "loopkeeper approvals")
	case step < 0 && len(waits) == 1:
		return waits[0], nil
	case step < 0:
		var steps []string
		for _, w := range waits {
			steps = append(steps, strconv.Itoa(w.Step))
		}
		return w, apierr.New(apierr.InvalidArgument, "several steps of run %s wait for a person (%s): say which", r.GetRunId(), strings.Join(steps, ", ")).WithNext(inbox)
	}
	for _, w := range waits {
		if w.Step == step {
			w.Item = int(r.GetItem())
			return w, nil
		}
	}
	v, err := s.o.Engine.Run(ctx, r.GetRunId())
	switch {
	case err != nil:
		return w, err
	case step >= len(v.Steps):
		return w, apierr.New(apierr.NotFound, "run %s has no step %d", v.ID, step).WithNext("loopkeeper show " + v.ID)
	default:
		return w, apierr.New(apierr.Conflict, "step %d of run %s waits for nobody: it is %s", step, v.ID, v.Steps[step].Status).WithNext("loopkeeper show "+v.ID, inbox)
	}
}

// fits refuses an answer to something else than was asked.
func fits(w engine.Wait, r *coordinatorv1.AnswerWaitRequest) error {
	at := fmt.Sprintf("%s %d", w.Run, w.Step)
	approval := r.GetOutcome() == "approved" || r.GetOutcome() == "rejected"
	switch w.Kind {
	case engine.WaitApprove:
		if !approval {
			return apierr.New(apierr.InvalidArgument, "step %d of run %s wants a yes or a no", w.Step, w.Run).WithNext("loopkeeper approve "+at, "loopkeeper reject "+at)
		}
	case engine.WaitQuestion:
		if r.GetOutcome() != "" || len(r.GetAnswerJson()) == 0 {
			return apierr.New(apierr.InvalidArgument, "step %d of run %s asks a question", w.Step, w.Run).WithNext("loopkeeper answer " + at + " ANSWER")
		}
		if !json.Valid(r.GetAnswerJson()) {
			return apierr.New(apierr.InvalidArgument, "the answer is not JSON").WithNext("loopkeeper answer " + at + " ANSWER  # takes a text as it is")
		}
	default:
		if r.GetOutcome() != engine.Happened && r.GetOutcome() != engine.NotHappened {
			return apierr.New(apierr.InvalidArgument, "of step %d of run %s nobody knows whether it happened: look, and say so", w.Step, w.Run).
				WithNext("loopkeeper resolve "+at+" --happened", "loopkeeper resolve "+at+" --not-happened  # it is then done again")
		}
	}
	return nil
}

// SuspendRun implements the service.
func (s *Server) SuspendRun(ctx context.Context, r *coordinatorv1.SuspendRunRequest) (*coordinatorv1.SuspendRunResponse, error) {
	v, err := s.o.Engine.SuspendRun(ctx, r.GetRunId(), r.GetBy(), r.GetReason())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	return &coordinatorv1.SuspendRunResponse{Run: runMessage(v)}, nil
}

// ResumeRun implements the service.
func (s *Server) ResumeRun(ctx context.Context, r *coordinatorv1.ResumeRunRequest) (*coordinatorv1.ResumeRunResponse, error) {
	v, err := s.o.Engine.ResumeRun(ctx, r.GetRunId(), r.GetBy())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	return &coordinatorv1.ResumeRunResponse{Run: runMessage(v)}, nil
}

// RollBack implements the service.
func (s *Server) RollBack(ctx context.Context, r *coordinatorv1.RollBackRequest) (*coordinatorv1.RollBackResponse, error) {
	if strings.TrimSpace(r.GetReason()) == "" {
		return nil, apierr.ToStatus(apierr.New(apierr.InvalidArgument, "a phase that is begun again has to be told why").WithNext("loopkeeper rollback RUN PHASE --reason TEXT"))
	}
	v, err := s.o.Engine.Rollback(ctx, r.GetRunId(), r.GetPipeline(), r.GetPhase(), r.GetReason(), r.GetBy())
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	return &coordinatorv1.RollBackResponse{Run: runMessage(v)}, nil
}
