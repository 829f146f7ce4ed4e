// Package simulation drives the real scheduler.Place under simulated time, over machines that behave as Ollama does, and
// beside it the policies of other routers over the same calls. It is for tests and for docs/placement.md; no program links it.
package simulation
