// Package ladder decides what the next try of a call is like after one that gave nothing usable. What helps depends on what went
// wrong: a model that looped needs another seed, one that was cut off more room, a plan that breaks rules the list of what it
// broke; and each helps only so often. So a kind of failure has a ladder of rungs, each with a bound, and the tries so far say
// which one is next (the table is research judgement.md §6.3, with what was left out said beside it).
//
// The package is pure: no I/O, no clock, standard library only. How often an item may be tried in all is its caller's to say.
package ladder
