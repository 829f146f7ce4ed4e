// Package script runs workflows: TypeScript or JavaScript, bundled once, pinned to its run, and executed in a sandbox
// that has no clock, no randomness, no files and no network of its own. A script talks to the world by requests; the
// same program given the same deliveries in the same order makes the same requests, which is what a replay rests on.
package script
