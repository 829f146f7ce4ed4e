// Package calls is what a worker does for the coordinator: Generate, Plan, Evaluate and Embed, each a stateless function
// from one request to one outcome. It builds the prompt, sends out only what Ollama's grammar handles safely, extracts
// and validates what comes back, and names what went wrong by a Kind that says whether another attempt can help.
//
// A model's answer is never taken at its word: a value counts when the whole schema accepts it, a plan when the fourteen
// rules hold (package plan), evidence when it stands on the line that was named (package evidence). A verdict is no
// model's to give: the coordinator computes it from what its judges say to each criterion.
package calls
