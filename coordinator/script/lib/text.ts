import type * as api from "loopkeeper";

const authors = new Map<string, string>(); // models, by the ref of what they wrote

/** Returns a text as a script is given it, and keeps in mind who wrote it: scripts pass on its ref alone, or name it anew. */
export function written(value: api.Text): api.Text {
  if (value.facts?.model) authors.set(value.ref, value.facts.model);
  return withoutFacts(value);
}

/** A text is passed on as a reference and nothing else, so its facts are there to read but are not part of its JSON. */
export function withoutFacts(value: api.Text): api.Text {
  return value.facts ? Object.defineProperty(value, "facts", { enumerable: false }) : value;
}

/** Returns the model that wrote a body, or the first text of a list whose author is known. */
export function authorOf(body: unknown): string | undefined {
  for (const text of (Array.isArray(body) ? body : [body]) as (Partial<api.Text> | null)[]) {
    const author = text?.facts?.model ?? authors.get(text?.ref as string);
    if (author !== undefined) return author;
  }
  return undefined;
}
