// Package system holds the tests of the whole: a coordinator with its real ledger, workers, and the stand-in Ollamas they
// wrap, in one process or as separate ones that are killed. It has no code of its own.
package system
