// Package residency holds the tests of which model is in whose memory, and when: a coordinator with its real ledger, workers over
// stand-in Ollamas, minutes and hours of fake time. It has no code of its own.
package residency
