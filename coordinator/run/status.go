package run

// Status is where a run stands.
type Status string

// The statuses of a run. The last seven are ends: nothing leaves them.
const (
	// Queued: entered by run.created; left when a script host is free (run.started), by a suspension or a cancel. Recovery queues it
	// again.
	Queued Status = "queued"
	// Running: entered by run.started; left by run.ended. Recovery replays the script and re-attaches to the attempts in flight.
	Running Status = "running"
	// Waiting: every open step waits for a person, a timer or a child, or for somebody to say whether a write happened. Entered and left
	// by the events of those steps; active time stands still. Recovery rebuilds the wait from its steps.
	Waiting Status = "waiting"
	// Suspended: a user parked the run (run.suspended); attempts in flight end, nothing new starts, and its own end waits. Left by
	// run.resumed or a cancel; a restart keeps it.
	Suspended Status = "suspended"
	// Completed: the script returned and everything was accepted: all that was expected is covered or handled, no failure was
	// swallowed or collected, every loop reached its goal, and every output rests on steps that succeeded. See Acceptance.
	Completed Status = "completed"
	// Incomplete: the script returned, but part of the work is missing. What is missing is listed exactly.
	Incomplete Status = "incomplete"
	// Failed: the script itself failed: it threw, deadlocked or broke a limit of its sandbox. The error names the place in
	// the user's own source.
	Failed Status = "failed"
	// TimedOut: the budget of active time ran out. What was in flight then has ended, nothing new was started.
	TimedOut Status = "timed_out"
	// Exhausted: another budget (tokens, calls) ran out, in the same way.
	Exhausted Status = "exhausted"
	// Cancelled: a user ended the run. Late results are kept as evidence and not applied.
	Cancelled Status = "cancelled"
	// Diverged: on replay the script asked for something else than the ledger has. Position, expected and got are recorded.
	Diverged Status = "diverged"
)

// Ended says whether s is an end.
func (s Status) Ended() bool {
	return s != "" && len(transitions[s]) == 0
}

// Transitions returns the statuses that can follow s, none for an end.
func (s Status) Transitions() []Status { return transitions[s] }

// Statuses lists every status of a run, in the order of a life.
func Statuses() []Status {
	return []Status{Queued, Running, Waiting, Suspended, Completed, Incomplete, Failed, TimedOut, Exhausted, Cancelled, Diverged}
}

var transitions = map[Status][]Status{
	Queued:    {Running, Suspended, Cancelled},
	Running:   {Waiting, Suspended, Completed, Incomplete, Failed, TimedOut, Exhausted, Cancelled, Diverged},
	Waiting:   {Running, Suspended, Failed, TimedOut, Exhausted, Cancelled, Diverged},
	Suspended: {Queued, Running, Waiting, Cancelled, Diverged},
}

// StepStatus is where a step stands, or one item of a batch.
type StepStatus string

// The statuses of a step. A step exists once its script asks for it, so none waits for another: that is the script's await. The last four are ends; so is unknown once the run has ended.
const (
	// StepReady: it could start now, or after its backoff, and waits for a place; a read or a wait, for its answer; a tool that
	// is to be allowed first (item.asked), for a person's (item.permitted). Entered by
	// step.requested, by an attempt that is to be repeated, or by a result that is to be judged; left by attempt.placed, by a result that
	// is taken over (item.reused), by the answer (step.ended). Recovery offers it to the scheduler again.
	StepReady StepStatus = "ready"
	// StepPlaced: an attempt has a node (attempt.placed) and is being sent. Recovery sends it again there under the same key.
	StepPlaced StepStatus = "placed"
	// StepRunning: the worker has begun (attempt.running), or the script checks the result. Recovery re-attaches by sending the same
	// key again; the check comes again with the replay.
	StepRunning StepStatus = "running"
	// StepUnknown: an external write whose outcome a crash, a cancel or a lost answer hid (attempt.failed, run.ended), here or in the run
	// that this one retries (item.doubted). It is not tried again until the tool or a person says whether it happened (item.resolved).
	// Recovery asks the tool.
	StepUnknown StepStatus = "unknown"
	// StepSucceeded: the result is recorded and, where judged, accepted. Never called again.
	StepSucceeded StepStatus = "succeeded"
	// StepFailed: no attempt is left or none can help; for a batch, at least one item failed.
	StepFailed StepStatus = "failed"
	// StepCancelled: the run ended before it did.
	StepCancelled StepStatus = "cancelled"
	// StepSkipped: it was not needed; the script or a plan left it out.
	StepSkipped StepStatus = "skipped"
)

// Ended says whether s is an end.
func (s StepStatus) Ended() bool { return len(stepTransitions[s]) == 0 }

// Transitions returns the statuses that can follow s, none for an end.
func (s StepStatus) Transitions() []StepStatus { return stepTransitions[s] }

// StepStatuses lists every status of a step, in the order of a life.
func StepStatuses() []StepStatus {
	return []StepStatus{StepReady, StepPlaced, StepRunning, StepUnknown, StepSucceeded, StepFailed, StepCancelled, StepSkipped}
}

var stepTransitions = map[StepStatus][]StepStatus{
	StepReady:   {StepPlaced, StepRunning, StepUnknown, StepSucceeded, StepFailed, StepCancelled, StepSkipped},
	StepPlaced:  {StepReady, StepRunning, StepSucceeded, StepFailed, StepCancelled, StepUnknown},
	StepRunning: {StepReady, StepSucceeded, StepFailed, StepCancelled, StepUnknown},
	StepUnknown: {StepReady, StepSucceeded},
}
