// Package ollama is a thin client for one Ollama server: what it holds, what a model needs, what is loaded, and one
// generation at a time. It adds to github.com/ollama/ollama/api exactly three things: errors with a typed kind, a
// stream that is whole or an error, and the facts of a model from which its memory need is computed. It decides nothing.
package ollama
