package ladder

// Step is how the next try differs from the last one.
type Step string

// The steps. Every one also has another seed and, where the answer has a format, a higher temperature: the same prompt and seed
// give the same bytes.
const (
	Reseed Step = "reseed" // nothing but that
	Room   Step = "room"   // twice the tokens for the answer, and no thinking where that can be switched off
	Mode   Step = "mode"   // the worker looks anew for the way in which the server applies a format
	Repair Step = "repair" // with the rejected plan and the code-written list of what is wrong with it
	Fresh  Step = "fresh"  // without any history: a model that sees its own errors repeats them
	Model  Step = "model"  // the next model of the role
	Person Step = "person" // nobody but a person can help
	End    Step = "end"    // nothing can help
)

// rung is a step with its bound.
type rung struct {
	step  Step
	bound int // 0: as often as the caller allows
}

// Kinds of failure that have a ladder of their own; see worker/calls.
const (
	Truncated   = "truncated"
	Broken      = "stream_broken"
	Empty       = "empty_turn"
	NoStructure = "text_instead_of_structure"
	Violation   = "schema_violation"
	PlanInvalid = "plan_invalid"
)

// ladders by kind of failure. A rung whose bound is used up, or that needs a model that is not there, is passed over.
var ladders = map[string][]rung{
	// Thinking ate the answer, or it needs more room. The research would ask a smaller schema: a user's is not ours to cut.
	Truncated: {{Room, 1}, {Model, 1}, {Reseed, 0}},
	// The server's own guard against repetition ends an answer like this.
	Broken: {{Reseed, 1}, {Model, 1}, {Reseed, 0}},
	Empty:  {{Reseed, 1}, {Model, 1}, {Reseed, 0}},
	// Perhaps the format was not applied at all.
	NoStructure: {{Mode, 1}, {Model, 1}, {Reseed, 0}},
	Violation:   {{Mode, 1}, {Model, 1}, {Reseed, 0}},
	// Most of what repairs can mend, the first two mend.
	PlanInvalid: {{Repair, 2}, {Fresh, 1}, {Model, 1}, {Person, 1}},
}

// others is the ladder of every other kind that another try can help: elsewhere, which the scheduler sees to, or later.
var others = []rung{{Reseed, 0}}
