package run

// The kinds of request that make a step, see docs/requests.md.
const (
	KindGenerate = "generate"
	KindBatch    = "batch"
	KindPlan     = "plan"
	KindEvaluate = "evaluate"
	KindEmbed    = "embed"
	KindRead     = "read"
	KindSleep    = "sleep"
	KindApprove  = "approve"
	KindQuestion = "question"
	KindTool     = "tool"
	KindSpawn    = "spawn"
	KindPage     = "page"
	KindPhase    = "phase"
)

// The kinds of request that are notes: recorded once, never answered.
const (
	KindOutput    = "output"
	KindCollected = "collected"
	KindLog       = "log"
	KindExpect    = "expect"
	KindCover     = "cover"
	KindWaive     = "waive"
	KindFallback  = "fallback"
	KindUntil     = "until"
)

// WaitFor is what a step waits for that is no business of the scheduler's.
type WaitFor string

// What a step can wait for here. Why an item waits for a place, the scheduler says.
const (
	WaitHuman    WaitFor = "human"
	WaitTimer    WaitFor = "timer"
	WaitChildren WaitFor = "children"
)

// kind is how the steps of a kind of request behave.
type kind struct {
	fields fields // of the request
	work   worker
	waits  WaitFor // of a step without a worker: what ends it
}

// worker is who does a step's work.
type worker int

const (
	nobody worker = iota // it is a wait, or the state itself has the answer
	model                // calls to workers, placed by the scheduler
	tool                 // attempts on the coordinator
	reader               // the artifact store
)

// steps are the kinds of request that make a step.
var steps = map[string]kind{
	KindGenerate: {work: model, fields: with(working, fields{"item": anything, "feedback": list(text), "check": yes, "reuse": yes})},
	KindBatch: {work: model, fields: with(working, fields{"items": either("an array or {lines: ref}", list(anything), lines),
		"keys": list(text), "check": yes, "reuse": yes})},
	KindPlan: {work: model, fields: with(writing, fields{"goal": text, "context": list(anything), "max_steps": whole(1, mostSteps),
		"parts": list(text), "workers": list(object(fields{"name": text, "about": text, "irreversible": yes, "asks": yes})), "inputs": list(text),
		"lists": list(object(fields{"name": text, "count": whole(0, mostPositions), "about": text})), "facts": list(text), "leads": list(text),
		"feedback": list(text), "check": yes})},
	KindEvaluate: {work: model, fields: with(writing, fields{"criteria": criteria, "subject": anything, "sources": list(anything), "goal": text,
		"code": list(object(fields{"name": word, "passed": yes, "detail": text})), "author": text,
		"reversed": yes})},
	KindEmbed: {work: model, fields: with(calling, fields{"inputs": list(anything)})},
	KindRead:  {work: reader, fields: fields{"ref": text}},
	KindTool:  {work: tool, fields: fields{"name": text, "input": anything, "retry": retryField, "uses": uses, "label": text}},
	KindSleep: {waits: WaitTimer, fields: fields{"seconds": number, "until": text, "label": text}},
	KindApprove: {waits: WaitHuman, fields: with(waiting, fields{"title": text, "text": text, "will": text,
		"on_timeout": oneOf(Approved, Rejected)})},
	KindQuestion: {waits: WaitHuman, fields: with(waiting, fields{"text": text, "choices": list(text), "schema": anything, "on_timeout": anything})},
	KindSpawn: {waits: WaitChildren, fields: fields{"workflow": text, "input": anything, "detached": yes, "key": text, "limits": anything,
		"label": text}},
	KindPage: {fields: fields{"step": whole(0, mostPositions), "from": whole(0, mostPositions), "count": whole(1, PageLimit),
		"only": oneOf(string(StepFailed), string(StepSucceeded))}},
	KindPhase: {fields: fields{"pipeline": text, "phases": list(text), "max_rollbacks": whole(0, mostAttempts), "done": object(fields{"phase": text,
		"outcome": oneOf(PhasePassed, PhaseSentBack, PhaseNeedsHuman), "target": text, "reason": text})}},
}

// checks are what the fields alone do not say.
var checks = map[string]func(s *spec, op string) error{
	KindGenerate: (*spec).checkPrompt,
	KindBatch:    (*spec).checkBatch,
	KindPlan:     (*spec).checkModel,
	KindEvaluate: (*spec).checkModel,
	KindEmbed:    (*spec).checkModel,
	KindRead:     (*spec).checkRead,
	KindTool:     (*spec).checkTool,
	KindSleep:    (*spec).checkSleep,
	KindApprove:  (*spec).checkApprove,
	KindQuestion: (*spec).checkQuestion,
	KindSpawn:    (*spec).checkSpawn,
	KindPage:     (*spec).checkPage,
	KindPhase:    (*spec).checkPhase,
}

// claimsOf are the notes that acceptance rests on.
var claimsOf = map[string]fields{
	KindExpect:   {"keys": list(text)},
	KindCover:    {"keys": list(text), "step": whole(0, mostPositions), "item": whole(0, mostPositions)},
	KindWaive:    {"step": whole(0, mostPositions), "item": whole(0, mostPositions), "key": text, "reason": text},
	KindFallback: {"step": whole(0, mostPositions), "item": whole(0, mostPositions), "by": whole(0, mostPositions)},
	KindUntil:    {"label": text, "round": whole(0, mostPositions), "reached": yes},
}

// WaitingFor says what an open step waits for; "" when it works, or waits for a place.
func (st *Step) WaitingFor() WaitFor {
	switch {
	case st.Note || st.Status.Ended() || st.spec == nil:
		return ""
	case st.Status == StepUnknown, st.Question() != nil:
		return WaitHuman
	default:
		return steps[st.Kind].waits
	}
}
