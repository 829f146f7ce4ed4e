// Package engine is the coordinator's single writer. One loop takes commands, asks the pure run package what they mean,
// appends the events in one transaction for everything that is ready, and only then lets effects out: attempts to
// workers, results to scripts, updates to watchers. After a crash it rebuilds all of it from the ledger.
package engine
