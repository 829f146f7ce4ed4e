// What the host gives: one function, which it takes away from nobody. This module removes it from the global object before
// any other code can see it.
type Request = ((kind: string, body: object | string) => Promise<unknown> | undefined) & { canonical(value: unknown, what: string): string };

const holder = globalThis as { __loopkeeper_request?: Request };

/** Asks the host for something. A body that is a text is canonical JSON. */
export const request = holder.__loopkeeper_request as Request;
delete holder.__loopkeeper_request;

/** Returns value as canonical JSON: sorted keys, no white space. `what` names the value in errors. */
export const canonical = request.canonical;
