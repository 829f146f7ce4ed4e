// Who does the steps: models that write, tools, and other workflows.
import { generate, read, spawn, t, tool } from "loopkeeper";
import type { Body, Json, PlanStep, Ref } from "loopkeeper";
import type { Input } from "../plan";
import type { Named } from "./books";
import { failed } from "./graph";

export const Worker = t.object({
  about: t.string({ minLength: 1, description: "What it can do, for the planner" }),
  model: t.optional(t.string({ format: "model", description: "The model that writes, where it is another one" })),
  tool: t.optional(t.string({ description: "The tool that it is; without one and without a workflow it writes texts" })),
  workflow: t.optional(t.string({ description: "The workflow that it is" })),
  input: t.optional(t.record(t.any(), { description: "What a tool or workflow is always given" })),
  schema: t.optional(t.record(t.any(), { description: "What a model fills in for a tool or workflow, a JSON Schema; \"@NAME\" stands for a text that the step reads" })),
  irreversible: t.optional(t.boolean({ description: "What it does cannot be undone: a person is asked before" })),
});

type Hand = t.Of<typeof Worker> & { writes: boolean };
type List = { name: string; items: any; count: number };
export type Crew = Pick<Input, "goal" | "planner" | "options"> & {
  model: string; judge: string; people: boolean; max_steps: number; context: readonly Named[];
  workers: { readonly [name: string]: Hand }; lists: readonly List[]; texts: Map<string, readonly Named[]>;
};

const writer = { write: { about: "writes a text: reads, works out, compares, sums up, drafts and checks" } };

export async function crewOf({ judge, people = true, max_steps = 8, context = [], inputs = [], workers = writer, lists = {}, ...input }: Input): Promise<Crew> {
  const hands = Object.entries(workers).map(([name, hand]): [string, Hand] => [name, { ...hand, writes: !hand.tool && !hand.workflow }]);
  const texts = [...context.map(({ name }): [string, Named[]] => [name, []]), ...inputs.map((file): [string, Named[]] => [file.name, [fileOf(file)]])];
  const all = await Promise.all(Object.entries(lists).map(async ([name, items]) => ({ name, items, count: await lengthOf(items) })));
  return { ...input, judge: judge ?? input.planner, people, max_steps, context: context.map(fileOf), workers: Object.fromEntries(hands), lists: all, texts: new Map(texts) };
}

const fileOf = (body: Ref): Named => ({ name: body.name, body, ...(/\.(png|jpe?g|webp|gif)$/i.test(body.name) && { image: true }) });

async function lengthOf(items: any): Promise<number> {
  if (Array.isArray(items)) return items.length;
  if (typeof items?.lines?.ref !== "string") throw new TypeError("a list is an array, or lines");
  return (await read(items.lines)).split("\n").filter((line) => line !== "").length;
}

/** What a call is given: texts, each under the name by which an instruction speaks of it, and images. */
export function shown(given: readonly Named[]): { context?: Body[]; images?: Ref[] } {
  const images = given.filter(({ image }) => image).map(({ body }) => body as Ref);
  const context = given.filter(({ image }) => !image).flatMap(({ name, body }) => [`## ${name}`, body]);
  return { ...(context.length > 0 && { context }), ...(images.length > 0 && { images }) };
}

const filling = "Fill in what this step of a plan needs. A text that is given is named as \"@\" and its name, alone in its field.\n\n{{item}}";

/** What a tool or workflow is given: what a model fills in, and over it what is fixed. */
export async function inputOf(
  step: PlanStep, given: readonly Named[], { input, schema, ...hand }: Hand, crew: Crew, feedback: readonly string[],
): Promise<{ [name: string]: any }> {
  if (!schema) return { ...input };
  const filled = await generate<{ [name: string]: Json }, object>({
    model: hand.model ?? crew.model, options: crew.options, prompt: filling, item: { instruction: step.instruction, writes: step.writes }, schema: schema as any,
    ...shown([...crew.context, ...given]), check: (value) => unknown(value, given), label: `input of ${step.id}`, ...(feedback.length > 0 && { feedback }) });
  return { ...(replaced(filled, given) as object), ...input };
}

const body = (text: string, given: readonly Named[]) => given.find(({ name }) => text === `@${name}`)?.body;

function replaced(value: any, given: readonly Named[]): any {
  if (typeof value === "string") return body(value, given) ?? value;
  if (Array.isArray(value)) return value.map((inner) => replaced(inner, given));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, replaced(inner, given)]));
}

function unknown(value: any, given: readonly Named[]): string[] {
  if (typeof value === "object" && value !== null) return Object.values(value).flatMap((inner) => unknown(inner, given));
  if (typeof value !== "string" || !/^@\S+$/.test(value) || body(value, given)) return [];
  return [`${value} names no text that is given; there are ${given.map(({ name }) => `@${name}`).join(", ") || "none"}`];
}

/** Lets a tool or a workflow act. A child that did not complete has not done its step. */
export async function act(id: string, hand: Hand, input: { [name: string]: any }): Promise<Json> {
  if (hand.tool) return (await tool(hand.tool, input, { label: id })) ?? null;
  const child = await spawn({ workflow: hand.workflow!, input, label: id });
  if (child.state !== "completed") throw Object.assign(failed("child_not_completed", `run ${child.run} of ${hand.workflow} ended as ${child.state}`), { child });
  return child.outputs.result ?? child.outputs;
}
