import type * as api from "loopkeeper";

/** A text is passed on as a reference and nothing else, so its facts are there to read but are not part of its JSON. */
export function withoutFacts(value: api.Text): api.Text {
  return value.facts ? Object.defineProperty(value, "facts", { enumerable: false }) : value;
}
