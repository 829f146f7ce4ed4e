// Package scheduler decides where a call runs: how much memory a model needs, which machine can hold it, what has to be
// unloaded first, and why. It is pure: values in, values out, no clock, no I/O, no map iteration, so that a decision can
// be replayed and explained.
package scheduler
