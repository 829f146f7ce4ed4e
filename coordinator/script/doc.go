// Package script runs workflows: TypeScript or JavaScript, bundled once, pinned to its run, and executed in a sandbox
// that has no clock, no randomness, no files and no network of its own. A script talks to the world by requests; the
// same program given the same deliveries in the same order makes the same requests, which is what a replay rests on.
//
// Host and program meet in two global names, and nothing else may be added without a new InterfaceVersion:
//
//   - the host gives __loopkeeper_request(kind, json). For a note it returns undefined, else a promise of the delivery
//     as JSON, {"pos":…,"value":…} or {"pos":…,"err":{"kind":…,"message":…,"step":…}}.
//   - the program sets __loopkeeper_program, with version, describe(): json, run(json): Promise<json> and
//     check(json): Promise<json>, which is given {"pos":…,"item":…,"value":…} and says {"passed":…,"reasons":[…]}.
//     Version 1 had no version and no check.
//
// Everything else, promises of values, canonical JSON, sources of outputs, the primitives themselves, is the library
// under lib/, which is bundled into the program. An upgrade of the binary therefore never changes a run under way.
package script
