// Package formats holds what proto/structure sends as a format to a real Ollama server: every recorded schema, what its
// grammar enforces, and that no schema whatever makes us send something that hurts it. It is a package of tests.
package formats
