package api

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loopkeeper/loopkeeper/coordinator/engine"
	"github.com/loopkeeper/loopkeeper/coordinator/judges"
	"github.com/loopkeeper/loopkeeper/coordinator/ledger"
	"github.com/loopkeeper/loopkeeper/coordinator/run"
	coordinatorv1 "github.com/loopkeeper/loopkeeper/proto/loopkeeper/coordinator/v1"
)

// This file says how the engine's views look on the wire.

func traceMessage(e ledger.Event) *coordinatorv1.GetTraceResponse {
	return &coordinatorv1.GetTraceResponse{Seq: e.Seq, Time: timestamppb.New(e.Time), Kind: e.Kind, PayloadJson: e.Payload}
}

func outputMessage(o engine.Output) *coordinatorv1.Output {
	m := &coordinatorv1.Output{Name: o.Name, ValueJson: o.Value, Inferred: o.Inferred}
	if o.Ref != nil {
		m.Ref = &coordinatorv1.Ref{Sha256: o.Ref.SHA256, Name: o.Ref.Name, Bytes: uint64(o.Ref.Bytes)}
	}
	for _, p := range o.Sources {
		m.Sources = append(m.Sources, strconv.Itoa(p))
	}
	return m
}

func itemMessage(i engine.ItemView) *coordinatorv1.Item {
	return &coordinatorv1.Item{Index: int32(i.Index), Key: i.Key, State: string(i.Status), ValueJson: i.Value, Text: i.Text,
		FailureKind: i.FailureKind, Failure: i.Failure, Attempts: int32(i.Attempts), Node: i.Node, Simulated: i.Simulated}
}

func stamp(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}

// rfc3339 is a time as text, "" for none.
func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func counts(c run.Counts) *coordinatorv1.Counts {
	return &coordinatorv1.Counts{Total: int64(c.Total), Succeeded: int64(c.Succeeded), Failed: int64(c.Failed), Running: int64(c.Running),
		Waiting: int64(c.Waiting), Cancelled: int64(c.Cancelled), Retried: int64(c.Retried)}
}

func runMessage(v engine.View) *coordinatorv1.Run {
	m := &coordinatorv1.Run{Id: v.ID, Workflow: v.Workflow, State: string(v.Status), Created: stamp(v.Created), Started: stamp(v.Started), Ended: stamp(v.Ended),
		Error: v.Error, ErrorStack: v.ErrorStack, Items: counts(v.Items), PromptTokens: v.PromptTokens, OutputTokens: v.OutputTokens, Calls: v.Calls,
		Simulated: v.Simulated, Logs: v.Logs, ScriptSha256: v.Script, Seed: v.Seed, Key: v.Key, Outputs: v.Outputs, CancelReason: v.CancelReason,
		Priority: string(v.Priority), Weight: v.Weight, Parent: v.Parent, Children: v.Children, Base: v.Base, ActiveNanos: int64(v.Active),
		Acceptance: acceptanceMessage(v.Acceptance), Waits: int32(v.Waits), ParkedBy: v.ParkedBy, ByCode: int64(v.ByCode), Handled: int64(v.Handled), BuiltIn: v.BuiltIn,
		Roles: roleMessages(v.Roles), Prompts: changedPrompts(v.Prompts), Judges: judgeWords(v.Judges)}
	for _, l := range v.Limits {
		m.Limits = append(m.Limits, limitMessage(l))
	}
	if v.Retry != nil {
		m.Retry = &coordinatorv1.Retry{Possible: v.Retry.Possible, Helps: v.Retry.Helps, Why: v.Retry.Why, Next: v.Retry.Next}
	}
	for _, p := range v.Phases {
		m.Phases = append(m.Phases, phaseMessage(p))
	}
	for _, st := range v.Steps {
		m.Steps = append(m.Steps, &coordinatorv1.Step{Id: strconv.Itoa(st.Pos), Kind: st.Kind, Label: st.Label, State: string(st.Status), Model: st.Model,
			Items: counts(st.Items), WaitingFor: st.WaitingFor, Started: stamp(st.Started), Ended: stamp(st.Ended), Error: st.Error, Node: st.Node,
			Until: rfc3339(st.Until), Child: st.Child, Verdict: judges.Conclude(st.Verdict).Verdict, Judged: judges.Conclude(st.Verdict).String()})
	}
	for _, n := range v.Nodes {
		m.Nodes = append(m.Nodes, &coordinatorv1.NodeShare{NodeId: n.NodeID, Name: n.Name, Items: n.Items, FailedTries: n.FailedTries,
			OutputTokens: n.OutputTokens, OutputNanos: int64(n.OutputTime), Simulated: n.Simulated})
	}
	for _, f := range v.InFlight {
		m.InFlight = append(m.InFlight, &coordinatorv1.InFlight{Step: strconv.Itoa(f.Step), Item: int32(f.Item), Label: f.Label, Node: f.Node, Model: f.Model,
			Attempt: int32(f.Attempt), Tokens: f.Tokens, TokensPerSecond: f.TokensPerSecond, Since: stamp(f.Since), Phase: f.Phase,
			Judging: f.Judging, NodeState: string(f.NodeState)})
	}
	for _, w := range v.Waiting {
		m.Waiting = append(m.Waiting, &coordinatorv1.Reason{WaitingFor: w.WaitingFor, Count: int64(w.Count), Why: w.Why})
	}
	for _, g := range v.Failures {
		m.Failures = append(m.Failures, &coordinatorv1.FailureGroup{Kind: g.Kind, Message: g.Message, Count: int64(len(g.Items)), Items: g.Items, RetryHelps: g.RetryHelps,
			Next: g.Next, Simulated: g.Simulated, Handled: int64(g.Handled)})
	}
	return m
}
