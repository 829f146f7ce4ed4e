// Package tools is what a step may do outside the models. Every tool says what goes in, what comes out, whom it affects, whether it
// can be undone and how to see what it did; a call with an effect is recorded before and after under its key, so that none is done
// twice without saying so.
package tools
