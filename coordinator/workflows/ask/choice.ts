// The schema of a choice among workflows, and what code can see wrong in one.
import { t } from "loopkeeper";
import type { Json, Schema } from "loopkeeper";

export type Known = { name: string; about: string; params?: { [keyword: string]: any } };
export type Choice = { workflow: string; input: { [name: string]: any } };
type There = { models?: readonly string[]; files?: readonly string[] };
type Part = { [keyword: string]: any };

/** Returns a schema that accepts one of these workflows with its own parameters, files as paths. */
export function choiceOf(workflows: readonly Known[], models?: readonly string[]): Schema<Choice> {
  return t.anyOf(...workflows.map(({ name, params = { type: "object" } }) => t.object({ workflow: t.enum([name]), input: asked(params, models) as Schema<any> })));
}

const path = { type: "string", description: 'A path, such as "@docs/a.md"' };

// What a person would type: "@path" where the workflow takes a file, and a name where it takes a model.
function asked(part: Part, models?: readonly string[]): Part {
  const { oneOf, description, ...rest } = part;
  const about = description && { description };
  if (part.format === "file" || part.format === "lines") return { ...path, ...about };
  if (part.items?.format === "file") return { ...rest, items: path, ...about };
  if (part.format === "model" && models) return { enum: models, ...about };
  return {
    ...rest, ...about,
    ...(part.properties && { properties: Object.fromEntries(Object.entries<Part>(part.properties).map(([name, inner]) => [name, asked(inner, models)])) }),
    ...(part.items && { items: asked(part.items, models) }),
    ...(part.anyOf && { anyOf: part.anyOf.map((inner: Part) => asked(inner, models)) }),
  };
}

/** Returns why a choice cannot be started: nothing when it can. */
export function faults({ workflow, input }: Choice, workflows: readonly Known[], { models, files }: There): string[] {
  const { params = {} } = workflows.find(({ name }) => name === workflow) ?? {};
  const has = (name: string) => input[name] !== undefined;
  const ways: string[][] = (params.oneOf ?? []).map(({ required = [] }: Part) => required);
  const taken = ways.filter((required) => required.every(has));
  const reasons = ways.length > 0 && taken.length !== 1 ? [`${workflow} takes exactly one of ${ways.map((names) => names.join(" and ")).join(", ")}`] : [];
  for (const [name, part] of Object.entries<Part>(params.properties ?? {})) {
    if (part.format === "model" && models && has(name) && !models.includes(input[name])) reasons.push(`there is no model ${input[name]}`);
    if (part.format !== "file" && part.format !== "lines" && part.items?.format !== "file") continue;
    for (const given of [input[name] ?? []].flat() as Json[]) {
      if (typeof given !== "string" || !given.startsWith("@") || given === "@") reasons.push(`${name}: name a file as "@" and its path`);
      else if (files && !files.some((file) => matches(given.slice(1), file))) reasons.push(`${name}: there is no file ${given.slice(1)}`);
    }
  }
  return reasons;
}

// A pattern as a shell has it: * is anything within a folder. A folder stands for what is in it.
function matches(pattern: string, file: string): boolean {
  const wild = pattern.replace(/\/$/, "").replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*/g, "[^/]*").replace(/\?/g, "[^/]");
  return new RegExp(`^${wild}(/.*)?$`).test(file);
}
