// Package trust is the coordinator's half of who belongs to a fleet: the authority that signs, the join tokens, and the book
// of the machines that were let in or revoked. README.md says how it plugs in.
package trust
