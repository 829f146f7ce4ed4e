// Package script runs workflows: TypeScript or JavaScript, bundled once, pinned to its run, and executed in a sandbox
// that has no clock, no randomness, no files and no network of its own. A script talks to the world by requests; the
// same program given the same deliveries in the same order makes the same requests, which is what a replay rests on.
//
// Host and program meet in two global names, and nothing else may be added without a new InterfaceVersion:
//
//   - the host gives __loopkeeper_request(kind, body), body an object or canonical JSON. For a note it returns undefined, else a
//     promise of the delivery, {pos, value, objects} with every object of the value, or {pos, err: {kind, message, step}}; and on it
//     canonical(value, what), which makes JSON.
//   - the program sets __loopkeeper_program, with version, describe(): json, run(input): Promise<json> and
//     check({pos, item, value}): Promise<json>, which says {"passed":…,"reasons":[…]}.
//
// Version 1 had no version and no check. Programs of version 2 take and give JSON in all places, and have the code for that in them.
//
// Everything else, promises of values, sources of outputs, the primitives themselves, is the library
// under lib/, which is bundled into the program. An upgrade of the binary therefore never changes a run under way.
package script
