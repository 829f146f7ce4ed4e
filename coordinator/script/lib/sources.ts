// Values remember the step that delivered them, so that an output can be traced without the script keeping books.

const objects = new WeakMap<object, number>();
const texts = new Map<string, number>();
const succeeded: number[] = [];

/** Notes that step delivered value and all objects in it; a text is known by its content. */
export function remember(value: unknown, within: readonly object[], step: number): void {
  succeeded.push(step);
  if (typeof value === "string") texts.set(fingerprint(value), step);
  for (let i = 0; i < within.length; i++) objects.set(within[i], step);
}

/** Returns made, which the library built from a delivered object, as delivered by the same step. */
export function likewise<T extends object>(made: T, origin: object): T {
  const step = objects.get(origin);
  if (step !== undefined) objects.set(made, step);
  return made;
}

/** Returns the step that delivered an object. */
export function sourceOf(object: object): number | undefined {
  return objects.get(object);
}

/** Returns the steps that delivered parts of value, in order; empty when nothing in it is known. */
export function sourcesOf(value: unknown): number[] {
  const found = new Set<number>();
  const note = (step: number | undefined) => step !== undefined && found.add(step);
  if (typeof value === "string") note(texts.get(fingerprint(value)));
  visit(value, (object) => {
    note(objects.get(object));
    for (const child of Object.values(object)) if (typeof child === "string") note(texts.get(fingerprint(child)));
  });
  return [...found].sort((a, b) => a - b);
}

/** Returns every step that has delivered so far. */
export function stepsSoFar(): number[] {
  return succeeded.slice().sort((a, b) => a - b);
}

function visit(value: unknown, see: (object: object) => void): void {
  const seen = new Set<object>();
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next !== "object" || next === null || seen.has(next)) continue;
    seen.add(next);
    see(next);
    for (const child of Object.values(next)) waiting.push(child);
  }
}

// Long texts are known by length, start and end, so that remembering one does not keep it in memory.
function fingerprint(text: string): string {
  return text.length <= 256 ? text : `${text.length}:${text.slice(0, 128)}${text.slice(-128)}`;
}
