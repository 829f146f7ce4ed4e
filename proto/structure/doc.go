// Package structure gets a JSON value of a given shape out of what a language model writes. A JSON Schema is split in
// two: the part that Ollama's grammar was measured to enforce without harm goes out as its format, and the whole of it
// decides about what comes back. The answer is parsed strictly first and repaired only when that fails; time is linear in
// its length, and no value is ever returned that the schema refuses. The package is pure: no I/O, no clock, no models.
package structure
