// Package modes finds out on which way of calling a server really applies a format with a model. Over a third of the ways
// that Ollama 0.17.4 offers lose it without a word: status 200 and free text, or the value in the field for thoughts. So
// each server version and model is asked once for two numbers that no model could guess, and the way on which both came
// back as they should is kept. The package sends nothing itself and keeps nothing but what it found out.
package modes
