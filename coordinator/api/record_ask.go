package api

import (
	"context"
	"encoding/json"
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
	asked, _, err := r.s.o.Engine.Submit(ctx, engine.Submission{Workflow: p.Name, Program: p, Input: inquiry.Input, Priority: run.Interactive})
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
	views, err := r.s.o.Engine.Watch(ctx, id)
	if err != nil {
		return engine.View{}, err
	}
	var last engine.View
	for v := range views {
		last = v
	}
	if last.Status.Ended() {
		return last, nil
	}
	if err := ctx.Err(); err != nil {
		_, cancelled := r.s.o.Engine.Cancel(context.WithoutCancel(ctx), id, "nobody waits for the answer any more")
		if apierr.CodeOf(cancelled) == apierr.Conflict { // it ended meanwhile
			cancelled = nil
		}
		if cancelled != nil {
			return last, cancelled
		}
		return last, apierr.Wrap(err, apierr.Cancelled, "wait for the answer")
	}
	return last, apierr.New(apierr.Unavailable, "the coordinator is stopping; the question goes on when it is back").WithNext("loopkeeper show " + id)
}
