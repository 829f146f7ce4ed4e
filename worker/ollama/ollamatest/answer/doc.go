// Package answer makes the stand-in's answers: text, thoughts and values, all from the words of the request. It is pure:
// the same request has the same answer, and the seed changes it as it would change a model's.
package answer

// Request is what an answer is made from.
type Request struct {
	System string // the system message
	Prompt string // the last user message
	Seed   int64  // options.seed, 0 where it does not matter
	Reject bool   // a verdict must not pass
}
