// Package panel decides about a subject that models judge: whom to ask next, and what the answers come to. A model answers one
// question per criterion and shows the lines that its answer rests on; the verdict is computed here, never asked for.
//
// The rules follow what is known of judges (docs/judging.md has the sources): left alone they pass almost everything, two of one
// family err together, nine hardly know more than two, and one prefers what its own family wrote. So a verified "not met" decides
// at once, "met" counts from two families, a third is asked only where two disagree, and what nobody can show is a person's.
//
// The package is pure: no I/O, no clock, standard library only.
package panel
