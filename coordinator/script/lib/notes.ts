// What a script tells without waiting for an answer.
import { canonical } from "./border";
import { note } from "./host";
import { sourcesOf, stepsSoFar } from "./sources";

export function output(name: string, value: unknown, options: { sources?: readonly unknown[] } = {}): void {
  if (typeof name !== "string" || name === "") throw new TypeError("output needs a name, a text that is not empty");
  if (value === undefined) throw new TypeError(`output.value is undefined, for "${name}"; only JSON values can leave a workflow`);
  const sources = sourcesOf(options.sources ?? value);
  if (sources.length > 0) note("output", { name, value, sources });
  else note("output", { name, value, sources: stepsSoFar(), inferred: true });
}

export function collect(label: string, failures: readonly { key: string; message: string; kind?: string; step?: number }[]): void {
  note("collected", { label, failures: failures.map(({ key, message, kind, step }) => ({ key, message, kind, step })) });
}

const writer = (level: string) => (...values: unknown[]) => note("log", { level, text: whole(values.map(shown).join(" ")) });

const levels = { debug: writer("debug"), info: writer("info"), warn: writer("warn"), error: writer("error") };

export const log = Object.assign(writer("info"), levels);

export const console = { log: levels.info, ...levels };

/** A log line is for people: half of a character in it is replaced, and stops nothing. */
function whole(text: string): string {
  return [...text].map((c) => (c.length === 1 && c >= "\ud800" && c <= "\udfff" ? "\ufffd" : c)).join("");
}

function shown(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return `${value.name}: ${value.message}`;
  try {
    return canonical(value, "");
  } catch {
    return String(value);
  }
}
