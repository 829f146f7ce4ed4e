// Package judges measures models that judge: it makes subjects of which the right answer is known, by putting a defect into a text
// that has none, and computes from a judge's answers what its word is worth. It also says a verdict in words, with what is known of
// those who gave it.
//
// The package is pure: no I/O, no clock, and beside the standard library only coordinator/run/panel, which is pure, too. The defects
// and the rates are those of docs/judging.md.
package judges
