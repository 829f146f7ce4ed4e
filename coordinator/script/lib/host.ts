// Calls of the host: what a script asks for, by position, and what it is given.
import { canonical, request } from "./border";
import { remember } from "./sources";

let running = false;
let position = 0; // of the next request
const early: [string, string][] = []; // notes made while the module loads

/** Starts the run: from now on primitives can be called. */
export function begin(): void {
  running = true;
  for (const [kind, json] of early) send(kind, json);
}

function send(kind: string, body: object | string): Promise<unknown> | undefined {
  const delivered = request(kind, body); // which may call the script: it writes the body
  position++;
  return delivered;
}

/** A step that failed for good. It is made when the step is called, so that its stack names the script's own line. */
export class StepError extends Error {
  declare kind: string;
  declare step: number;

  toString(): string {
    return `step ${this.step} failed (${this.kind}): ${this.message}`;
  }
}
Object.defineProperties(StepError.prototype, { name: { value: "StepError" }, kind: { value: "", writable: true }, step: { value: 0, writable: true } });

interface Delivered {
  pos: number;
  value?: unknown;
  objects?: object[]; // every one in value
  err?: { kind: string; message: string; step: number };
}

/** Returns the position that the next request will have. */
export function here(): number {
  return position;
}

let rolledBack = (position: number): boolean => false;

/** Sets who is told of a step that failed because its phase was rolled back; true means that its caller waits for nothing any more. */
export function onRollback(told: (position: number) => boolean): void {
  rolledBack = told;
}

/** Calls a primitive and waits for its value. With `from`, what was delivered counts as delivered by that step. */
export async function call<T>(kind: string, body: object, from?: number): Promise<T> {
  if (!running) throw new Error(`${kind} can only be called while the workflow runs, not while its file loads`);
  const failure = new StepError();
  const delivered = (await send(kind, body)) as Delivered;
  if (delivered.err) {
    if (delivered.err.kind === "rolled_back" && rolledBack(delivered.pos)) await new Promise(() => {});
    throw Object.assign(failure, delivered.err);
  }
  remember(delivered.value, delivered.objects as object[], from ?? delivered.pos);
  return delivered.value as T;
}

/** Tells the host something that needs no answer. */
export function note(kind: string, body: object): void {
  if (running) send(kind, body);
  else early.push([kind, canonical(body, kind)]);
}
