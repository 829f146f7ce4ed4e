// Package run is the state machine of a run, pure: Decide says which events a command leads to, Apply folds an event into
// the state. There is no clock, no randomness and no I/O here; times, ids and seeds come in with commands, so the same
// events always give the same state. That is all that crash recovery, replay and audit rest on.
package run
