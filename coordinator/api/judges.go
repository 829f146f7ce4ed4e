package api

import (
	"context"
	"slices"

	"github.com/loopkeeper/loopkeeper/coordinator/judges"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// JudgeBook keeps what was found out about judges.
type JudgeBook interface {
	// Records returns all of it, by model, type and time, the newest first.
	Records(ctx context.Context) ([]judges.Record, error)
	// Keep puts records in the place of those with the same key.
	Keep(ctx context.Context, records []judges.Record) error
	// Now returns what is so of a model at this moment.
	Now(model string) judges.Now
}

// judgeRole is the role whose models judge.
const judgeRole = "judge"

// judgeServer implements coordinatorv1.JudgeServiceServer.
type judgeServer struct {
	coordinatorv1.UnimplementedJudgeServiceServer
	s *Server
}

// ListJudges implements the service.
func (j *judgeServer) ListJudges(ctx context.Context, _ *coordinatorv1.ListJudgesRequest) (*coordinatorv1.ListJudgesResponse, error) {
	records, err := j.s.o.Judges.Records(ctx)
	if err != nil {
		return nil, apierr.ToStatus(err)
	}
	out := &coordinatorv1.ListJudgesResponse{Prompts: j.s.o.Judges.Now("").Prompts}
	for _, r := range records {
		m := judgeMessage(r, r.Stale(j.s.o.Judges.Now(r.Judge)))
		out.Judges = append(out.Judges, m)
		if m.Stale == "" {
			out.Pairs = append(out.Pairs, pairMessages(r.Judge, r.Pairs)...)
		}
	}
	out.Uncalibrated = j.s.uncalibrated(records)
	return out, nil
}

// uncalibrated are the models of the role judge that nothing that still holds is known of.
func (s *Server) uncalibrated(records []judges.Record) (models []string) {
	for _, m := range s.o.Roles[judgeRole] {
		holds := func(r judges.Record) bool {
			return ollamaName(r.Judge) == ollamaName(m.Model) && r.Stale(s.o.Judges.Now(r.Judge)) == ""
		}
		if !slices.ContainsFunc(records, holds) {
			models = append(models, m.Model)
		}
	}
	return models
}

func judgeMessage(r judges.Record, stale string) *coordinatorv1.Judge {
	m := &coordinatorv1.Judge{Model: r.Judge, Digest: r.Digest, Family: r.Family, Type: r.Type, Gate: r.Calibration().Word(), Subjects: int32(r.N()), Margin: r.Margin(),
		Passed: rateMessage(r.Passed), Found: rateMessage(r.Found), Abstained: rateMessage(r.Abstained), Lines: rateMessage(r.Lines), Flipped: rateMessage(r.Flipped),
		Same: rateMessage(r.Same), Failed: rateMessage(r.Failed), Defects: map[string]*coordinatorv1.Rate{}, Prompts: r.Prompts, Servers: r.Servers, Run: r.Run,
		Time: stamp(r.Time), Stale: stale, Simulated: r.Simulated}
	for kind, rate := range r.Defects {
		m.Defects[kind] = rateMessage(rate)
	}
	return m
}

func rateMessage(r judges.Rate) *coordinatorv1.Rate {
	low, high := r.Interval()
	return &coordinatorv1.Rate{Hits: int32(r.Hits), Of: int32(r.Of), Low: low, High: high}
}

// pairMessages are the pairs that a judge is the first of: each pair is kept with both.
func pairMessages(judge string, pairs []judges.Pair) (out []*coordinatorv1.JudgePair) {
	for _, p := range pairs {
		if p.Judges[0] == judge {
			out = append(out, &coordinatorv1.JudgePair{One: p.Judges[0], Two: p.Judges[1], Type: p.Type, Missed: rateMessage(p.Missed), Alone: p.Alone})
		}
	}
	return out
}
