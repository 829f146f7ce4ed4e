// Package oracle holds the memory formula to two programs that are not ours, on the header of one file per architecture:
// Ollama's own fs/ggml (v0.17.4) and gguf-parser, an estimator of llama.cpp. It is a package of tests.
package oracle
