package calls

import "github.com/loopkeeper/loopkeeper/worker/ollama"

// Kind is how a call ended. The words are part of the contract with the coordinator and of every ledger.
type Kind string

// The kinds. Everything but OK is a failure; Advice says what can be done about it.
const (
	// OK: done, parsed, valid, checked.
	OK Kind = "ok"
	// EmptyTurn: nothing but white space or thinking came back, and the model stopped by itself.
	EmptyTurn Kind = "empty_turn"
	// TextInsteadOfStructure: a structure was asked for, and the answer holds none, or a tool call printed as text.
	TextInsteadOfStructure Kind = "text_instead_of_structure"
	// SchemaViolation: a structure came back, but the schema refuses it, or it contradicts itself (one key, two values).
	SchemaViolation Kind = "schema_violation"
	// Truncated: num_predict or the context ended the answer; nothing that was cut off counts as whole.
	Truncated Kind = "truncated"
	// InputTooLong: the prompt does not fit into the context. Sending it again unchanged cannot help.
	InputTooLong Kind = "input_too_long"
	// StreamBroken: the answer ended without done: a lost connection, or the server's own guard against repetition.
	StreamBroken Kind = "stream_broken"
	// ModelMissing: this node does not have the model, or has another digest under its name.
	ModelMissing Kind = "model_missing"
	// OutOfMemory: the model could not be loaded here.
	OutOfMemory Kind = "out_of_memory"
	// OllamaUnreachable: the node's Ollama does not answer.
	OllamaUnreachable Kind = "ollama_unreachable"
	// Busy: the node's Ollama has a full queue.
	Busy Kind = "busy"
	// Deadline: the call's deadline passed.
	Deadline Kind = "deadline"
	// Cancelled: the caller went away or cancelled.
	Cancelled Kind = "cancelled"
	// Stalled: no first token, or no next one, for as long as the limits allow.
	Stalled Kind = "stalled"
	// BadSchema: the schema in the request is not a usable JSON Schema, no value satisfies it, or it fills the context.
	BadSchema Kind = "bad_schema"
	// BadRequest: the request is wrong in another way: an unknown placeholder, an option that the model refuses.
	BadRequest Kind = "bad_request"
	// ServerError: any other failure on Ollama's side, such as a runner that died.
	ServerError Kind = "server_error"
	// PlanInvalid: the plan is well-formed, but its graph does not hold; the outcome's Reasons list why.
	PlanInvalid Kind = "plan_invalid"
)

// Advice says whether and how another attempt can help.
type Advice string

// The advices.
const (
	// Never: the same request fails the same way everywhere; somebody has to change it.
	Never Advice = "never"
	// Again: the same request can succeed, here or elsewhere, after a pause.
	Again Advice = "again"
	// OtherNode: prefer another node; this one again only when there is none.
	OtherNode Advice = "other_node"
	// Changed: only with a new seed and a higher temperature, which a higher attempt number brings: the same prompt
	// and seed give the same bytes.
	Changed Advice = "changed"
)

// Advice follows research on what helps after which failure: a model's fault needs variation, a node's fault another
// node, a fault of the request a person. OK and kinds that are not ours need none: Never.
func (k Kind) Advice() Advice {
	switch k {
	case EmptyTurn, TextInsteadOfStructure, SchemaViolation, Truncated, StreamBroken, PlanInvalid:
		return Changed
	case ModelMissing, OutOfMemory, OllamaUnreachable, Busy, ServerError, Stalled:
		return OtherNode
	case Deadline:
		return Again
	default: // OK, InputTooLong, BadSchema, BadRequest, Cancelled
		return Never
	}
}

// kindOf translates what the client reports.
func kindOf(k ollama.Kind) Kind {
	switch k {
	case ollama.ModelMissing:
		return ModelMissing
	case ollama.InputTooLong:
		return InputTooLong
	case ollama.OutOfMemory:
		return OutOfMemory
	case ollama.Unreachable:
		return OllamaUnreachable
	case ollama.StreamBroken:
		return StreamBroken
	case ollama.Busy:
		return Busy
	case ollama.BadRequest:
		return BadRequest
	default:
		return ServerError
	}
}
