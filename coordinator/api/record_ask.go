package api

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/loopkeeper/loopkeeper/coordinator/answers"
	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	"github.com/loopkeeper/loopkeeper/coordinator/script"
	"github.com/loopkeeper/loopkeeper/proto/apierr"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// question is the workflow of a run that asks a step about what it did. It is a run like any other: placed, recorded, and traced.
var question = sync.OnceValues(func() (script.Program, error) {
	p, err := script.BundleText("why.ts", `import { generate, read } from "loopkeeper";
export default async function why(input: any) { return await read(await generate(input)); }
`)
	p.Name = "why"
	return p, err
})

// ask puts a question to the step that judged or made something, with the input that it had, and waits for the answer.
func (r *records) ask(ctx context.Context, id string, reason *answers.Reason, text string, out *coordinatorv1.WhyResponse) error {
	inquiry, err := r.inquiry(ctx, id, reason, text)
	if err != nil {
		return err
	}
	if err := r.s.admit(ctx, []string{inquiry.Model}, true, &coordinatorv1.SubmitResponse{}); err != nil {
		return err
	}
	p, err := question()
	if err != nil {
		return err
	}
	asked, _, err := r.s.o.Engine.Submit(context.WithoutCancel(ctx), engine.Submission{Workflow: p.Name, Program: p, Input: inquiry.Input, Priority: run.Interactive})
	if err != nil {
		return err
	}
	view, err := r.await(ctx, asked)
	if err != nil {
		return err
	}
	if view.Status != run.Completed {
		return apierr.New(apierr.Unavailable, "the question was not answered: run %s is %s", asked, view.Status).WithNext("loopkeeper show "+asked, "loopkeeper why "+id)
	}
	results, err := r.s.o.Engine.Outputs(ctx, asked)
	if err != nil {
		return err
	}
	for _, o := range results {
		if json.Unmarshal(o.Value, &out.Answer) != nil {
			out.Answer = string(o.Value)
		}
	}
	out.AnsweredBy = inquiry.Who + " (run " + asked + ")"
	return nil
}

// inquiry builds the question, and refuses one whose input is not there any more.
func (r *records) inquiry(ctx context.Context, id string, reason *answers.Reason, text string) (answers.Inquiry, error) {
	sizes := map[string]int64{}
	for _, b := range reason.Bases {
		for _, body := range b.Bodies {
			if body.Gone == "" {
				sizes[body.SHA256] = body.Bytes
			}
		}
	}
	inquiry, err := reason.Ask(text, sizes)
	if err != nil {
		return inquiry, apierr.Wrap(err, apierr.InvalidArgument, "ask run %s", id).WithNext("loopkeeper why "+id, "loopkeeper show "+id)
	}
	for _, sha := range inquiry.Bodies {
		_, gone, err := r.stat(ctx, sha)
		if err != nil {
			return inquiry, err
		}
		if gone != "" {
			return inquiry, apierr.New(apierr.NotFound, "%s cannot be asked: of what it was given, %s", inquiry.Who, gone).WithNext("loopkeeper why " + id)
		}
	}
	return inquiry, nil
}

// await waits for a run's end. One that nobody waits for any more is cancelled.
func (r *records) await(ctx context.Context, id string) (engine.View, error) {
	last, err := r.last(ctx, id)
	switch gone := ctx.Err(); {
	case last.Status.Ended():
		return last, nil
	case gone != nil:
		_, err := r.s.o.Engine.Cancel(context.WithoutCancel(ctx), id, "nobody waits for the answer any more")
		if apierr.CodeOf(err) == apierr.Conflict { // it ended meanwhile
			err = nil
		}
		return last, errors.Join(apierr.Wrap(gone, apierr.Cancelled, "wait for the answer"), err)
	case err != nil:
		return last, err
	default:
		return last, apierr.New(apierr.Unavailable, "the coordinator is stopping; the question goes on when it is back").WithNext("loopkeeper show " + id)
	}
}

// last is the newest view of a run when it has ended, or when ctx has.
func (r *records) last(ctx context.Context, id string) (v engine.View, err error) {
	views, err := r.s.o.Engine.Watch(ctx, id)
	if err != nil {
		return v, err
	}
	for v = range views { // up to the last
	}
	return v, nil
}
