// Checked by tsc only: the types follow the schemas, and mistakes are seen.
import { all, batch, check, each, evaluate, fallback, gate, generate, lines, pages, pipeline, plan, question, sleep, spawn, t, until, waive } from "loopkeeper";
import type { Ref } from "loopkeeper";

const Point = t.object({ x: t.number(), label: t.optional(t.string()), side: t.enum(["left", "right"]), more: t.array(t.file()) });
type Point = t.Of<typeof Point>;

export const good: Point = { x: 1, side: "left", more: [{ ref: "ab", name: "a.md", bytes: 1 }] };
// What the coordinator reads of a parameter can be said of it.
export const params = t.object({ rules: t.files({ covered: false }), all: t.lines({ covered: true }), items: t.array(t.file(), { covered: false, minItems: 1 }) });
// @ts-expect-error it is covered or not
export const partly = t.files({ covered: "partly" });
// @ts-expect-error side has two values
export const wrongSide: Point = { x: 1, side: "up", more: [] };
// @ts-expect-error x is required
export const missing: Point = { side: "left", more: [] };
// @ts-expect-error the object has no y
export const extra: Point = { x: 1, y: 2, side: "left", more: [] };

export async function inferred() {
  const point: Point = await generate({ model: "m", prompt: "p", schema: Point });
  const text: string = (await generate({ model: "m", prompt: "p" })).ref;
  // @ts-expect-error without a schema a text comes by reference
  const body: string = await generate({ model: "m", prompt: "p" });
  const labels: (string | undefined)[] = (await batch({ model: "m", prompt: "p", items: ["a"], schema: Point })).values.map((p) => p.label);
  const lengths: readonly number[] = (await each(["a"], async (item) => item.length)).values;
  const { a, b } = await all({ a: async () => 1, b: Promise.resolve("x") });
  // @ts-expect-error prompt is required
  await generate({ model: "m" });
  return [point, text, body, labels, lengths, a + 1, b.length] as const;
}

export async function judged(files: Ref[]) {
  const found = await batch({ model: "m", prompt: "p", items: files, schema: t.array(Point), check: (points, file) => points.length > file.bytes || ["few", file.name] });
  // @ts-expect-error a check does not return a number
  await batch({ model: "m", prompt: "p", items: files, schema: Point, check: (point) => point.x });
  // @ts-expect-error without a schema there is no value, only a text by reference
  await generate({ model: "m", prompt: "p", check: (text) => text.x > 1 });
  await batch({ model: "m", prompt: "p", items: lines(files[0]), check: (text) => text.facts.simulated });
  const even: number = await check(() => generate({ model: "m", prompt: "p", schema: t.integer() }), (n) => n % 2 === 0);
  for await (const page of pages(found)) for (const item of page) waive(item, "why");
  for await (const page of pages(async (token: string | null) => ({ items: [token ?? "first"], next: null }))) page[0].length;
  return [found.values[0][0].side, even] as const;
}

export async function planned() {
  const { outcome, steps, questions } = await plan({
    model: ["planner", "large"], goal: "g", parts: ["p"], workers: [{ name: "post", about: "sends", irreversible: true }], lists: [{ name: "l", count: 3 }],
    check: (plan) => plan.steps.every((step) => step.each === "" || step.reads.length > 0) });
  // @ts-expect-error a step has an instruction, and no goal
  steps[0].goal;
  const criteria = ["good", { text: "nothing is invented", absence: true, must: false }];
  const { rule, facts, judges } = await evaluate({ model: "judge", criteria, code: [{ name: "tests", passed: true }], subject: "s", author: "m" });
  // @ts-expect-error a criterion has a text
  await evaluate({ model: "judge", criteria: { must: true }, subject: "s" });
  await batch({ model: "m", prompt: "p", items: ["a"], images: [{ ref: "ab", name: "a.png", bytes: 1 }] });
  await generate({ model: ["a", "b"], prompt: "p", evaluate: { model: ["c", "d"], criteria } });
  const n: number = facts[0].line;
  return [outcome === "plan", questions.length, rule, judges[0].calibration === "good", n] as const;
}

export async function waiting() {
  const { answer } = await question({ text: "Which?", choices: ["a", "b"] });
  const chosen: "a" | "b" = answer;
  const { answer: asked } = await question({ text: "Where?", schema: Point });
  // @ts-expect-error sleep is for seconds or until a time, not both
  await sleep({ seconds: 1, until: "2026-01-01T00:00:00Z" });
  const child = await spawn({ workflow: "map", input: {} });
  const run = await spawn({ workflow: "map", input: {}, detached: true });
  // @ts-expect-error a child that was only started has no outputs
  run.outputs;
  const other: string | number = await fallback(async () => "a", () => 1);
  const { state } = await until({ state: 3, rounds: 2, reached: (n) => n === 0, round: async (n) => n - 1 });
  const made = await pipeline({ name: "p", phases: [{ name: "a", run: (inputs, at) => inputs.x + at.round, gate: () => gate.sent_back("a", "why") }] });
  // @ts-expect-error a gate is made by gate.passed() and its like
  await pipeline({ name: "p", phases: [{ name: "a", run: () => 1, gate: () => true }] });
  return [chosen, asked.x, child.outputs.x, run.run, other, state + 1, made.a] as const;
}
