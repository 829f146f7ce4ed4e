// Package workflowtest has no code but tests: they drive the built-in workflows through engine, run and ledger, which
// package workflows itself knows nothing of.
package workflowtest
