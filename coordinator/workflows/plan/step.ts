// Does one step of a plan, and has it judged.
import { batch, generate, pages, read } from "loopkeeper";
import type { Body, CodeCriterion, PlanStep, Ref, Text } from "loopkeeper";
import type { Books, Named } from "./books";
import { failed } from "./graph";
import { judged } from "./judging";
import { normalised } from "./parts";
import { permitted } from "./people";
import { act, inputOf, shown, type Crew } from "./workers";

/** What a step made: its texts by name, or what came of an act. */
export type Made = { values: Named[]; code: CodeCriterion[] };
/** A step that is done; `open` are the elements of its list that are not, and `by` is what the ledger knows it by. */
export type Done = Made & { step: PlanStep; text: boolean; verdict: string; reasons: readonly string[]; open: readonly string[]; by: unknown };

const prompt = `Carry out one step of a plan. What it reads is given. Answer with the result of this step only, and not with how to get it.
If it cannot be done with what is given, answer with one line only: CANNOT BE DONE: what is missing.

{{item}}`;

/** Does a step until it is accepted, within the bounds; throws what is in the way. */
export async function doStep(step: PlanStep, crew: Crew, books: Books): Promise<Done> {
  const given = step.reads.flatMap((name) => books.there.get(name) ?? []);
  const done = step.each === "" ? await once(step, given, crew, books) : await forEach(step, given, crew);
  for (const name of step.writes) books.there.set(name, done.values.filter((value) => step.each !== "" || value.name === name));
  return done;
}

async function once(step: PlanStep, given: Named[], crew: Crew, books: Books): Promise<Done> {
  const input = JSON.stringify([step.worker, normalised(step.instruction), given]);
  const hand = crew.workers[step.worker];
  const feedback: string[] = [];
  for (let tries = 0; ; tries++) {
    const made = hand.writes ? await write(step, given, crew, feedback) : await use(step, given, crew, feedback);
    if (books.again(input, made.values)) throw failed("loop", "the same worker made the same of the same input again");
    const subject = hand.writes ? await oneText(made.values) : made.values[0].body;
    const sources = given.map(({ body }) => body);
    const { verdict, reasons, opinions } = await judged(`step ${step.id}`, {
      model: crew.judge, goal: step.instruction, criteria: step.done_when, code: made.code, subject, sources, label: `judge ${step.id}` }, crew);
    if (verdict === "passed") return { ...made, step, text: hand.writes, verdict, reasons, open: [], by: made.values[0].body };
    if (verdict === "needs_human" || !books.mayRedo(tries)) throw Object.assign(failed(verdict, reasons.join("; ")), { opinions });
    feedback.push(...reasons.filter((reason) => !feedback.includes(reason)));
  }
}

/** What is judged is one text; several become one under their names. */
async function oneText(values: readonly Named[]): Promise<Body> {
  if (values.length === 1) return values[0].body;
  return (await Promise.all(values.map(async ({ name, body }) => `## ${name}\n\n${await read(body as Ref)}`))).join("\n\n");
}

/** Writes each text of a step; the later ones are given the earlier. */
async function write(step: PlanStep, given: Named[], crew: Crew, feedback: string[]): Promise<Made> {
  const names = step.writes.length > 0 ? step.writes : [step.id];
  if (crew.workers[step.worker].irreversible) await permitted(step.id, step.instruction, [], crew);
  const values: Named[] = [], code: CodeCriterion[] = [];
  for (const name of names) {
    const text = await generate({
      model: crew.workers[step.worker].model ?? crew.model, options: crew.options, prompt, item: task(step, names.length > 1 ? name : undefined),
      ...shown([...crew.context, ...given, ...values]), label: names.length > 1 ? `${step.id} ${name}` : step.id, ...(feedback.length > 0 && { feedback }) });
    const missing = await cannot(text);
    if (missing !== undefined) throw failed("cannot", missing);
    values.push({ name, body: text });
    code.push({ name: `${name} is written`, passed: text.bytes > 0, detail: `${text.bytes} bytes` });
  }
  return { values, code };
}

async function use(step: PlanStep, given: Named[], crew: Crew, feedback: string[]): Promise<Made> {
  const hand = crew.workers[step.worker];
  const input = await inputOf(step, given, hand, crew, feedback);
  if (hand.irreversible) await permitted(step.id, step.instruction, [input], crew);
  const value = await act(step.id, hand, input);
  const code = [{ name: `${step.worker} gave a result`, passed: value !== null }];
  return { values: (step.writes.length > 0 ? step.writes : [step.id]).map((name) => ({ name, body: value as Body })), code };
}

/** Does a template step: one batch over its list, each element judged by itself. What failed of it stays open, and the rest is kept. */
async function forEach(step: PlanStep, given: Named[], crew: Crew): Promise<Done> {
  const { items } = crew.lists.find(({ name }) => name === step.each)!;
  const criteria = step.done_when.map((text) => `For the element that is given: ${text}`);
  const made = await batch({
    model: crew.workers[step.worker].model ?? crew.model, options: crew.options, items, prompt: templateOf(step), label: step.id,
    ...shown([...crew.context, ...given]), check: refused, evaluate: { criteria, model: crew.judge } });
  const values: Named[] = [], open: string[] = [];
  for await (const page of pages(made)) {
    for (const { key, ref, bytes, failure } of page) {
      if (failure) open.push(`${key}: ${failure.message}`);
      else values.push({ name: key, body: { ref, name: key, bytes } as Ref });
    }
  }
  if (values.length === 0) throw failed("nothing_done", `none of ${made.total} elements: ${open[0] ?? "the list is empty"}`);
  return { values, code: [], step, text: true, by: made, verdict: open.length === 0 ? "passed" : "partly", reasons: open.slice(0, 20), open };
}

/** Says what is wrong with an element, before a judge is asked: a worker's word that it cannot be done is no result. */
async function refused(text: Text): Promise<string[]> {
  if (text.bytes === 0) return ["it is empty"];
  const missing = await cannot(text);
  return missing === undefined ? [] : [`it cannot be done, says its worker: ${missing}`];
}

function templateOf(step: PlanStep): string {
  const apart = task(step).replace(/\{(?=\{)|\}(?=\})/g, "$& "); // braces of an instruction are not the place of the element
  return prompt.replace("{{item}}", () => `${apart}\n\nDo it for this element of ${step.each}:\n\n{{item}}`);
}

function task({ instruction, done_when }: PlanStep, name?: string): string {
  const one = name === undefined ? "" : `\n\nOf this step write ${name} now, and nothing else.`;
  return `${instruction}\n\nIt is done when:\n${done_when.map((text) => `- ${text}`).join("\n")}${one}`;
}

// One line is short: what is longer is a result, and is not opened.
const longest = 1000; // bytes

async function cannot(text: Text): Promise<string | undefined> {
  if (text.bytes > longest) return undefined;
  return /^\W*CANNOT BE DONE\W+(.+)/i.exec(await read(text))?.[1].trim();
}
