// Package ollamatest is a stand-in for Ollama: an http.Handler that speaks Ollama's HTTP API as version 0.17.4 does,
// with simulated memory, load times, token rates and faults, and with answers made from the request itself. It needs no
// GPU and no model. Tests use it in process; cmd/fakeollama serves it.
//
// What is alike: routes, status codes and error texts, streaming, metrics, the load queue, reload on changed options,
// eviction, silent spill, slots, sticky keep-alive, and where a value lands when thinking and format meet. What is not:
// the answers have no meaning beyond the words of the prompt, a token is four characters, and slots do not share speed.
// No two servers differ in their answers: only the request decides.
package ollamatest
