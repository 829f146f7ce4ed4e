// Package enrol lets machines into a fleet: the service that the coordinator offers to strangers, and the calls by which a
// new machine uses it, with a token or with a code that a person compares.
package enrol
