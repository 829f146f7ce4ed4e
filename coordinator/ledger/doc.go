// Package ledger keeps what happened: the append-only record of every run's events, the rows that list runs, small
// shared values, and content-addressed artifacts. It knows nothing of what an event means. What Append has acknowledged
// survives a power cut, whole or not at all.
package ledger
