// Puts together what the steps made, has the whole judged, and says what is missing.
import { collect, cover, generate, log, output, waive } from "loopkeeper";
import type { Body, Evaluation } from "loopkeeper";
import type { Input } from "../plan";
import type { Books } from "./books";
import type { Ended } from "./graph";
import { judged } from "./judging";
import type { Done } from "./step";
import { shown, type Crew } from "./workers";

const assemble = "Put the given parts together into one result that achieves this goal. Leave nothing out and add nothing.\n\n{{item}}";

export async function finish(input: Input, crew: Crew, books: Books): Promise<Body | undefined> {
  const { done, ended, replaced } = books;
  const earlier = done.filter((one) => !ended.some(({ value }) => value === one)).map((value) => reported({ step: value.step, value }));
  output("steps", [...earlier, ...replaced.map((one) => reported(one, "replaced")), ...ended.map((one) => reported(one))]);
  if (ended.some(({ error }) => error)) collect("steps", failures(ended));
  if (done.length === 0) {
    log.error("no step succeeded, so there is no result");
    return undefined;
  }
  covered(input, books);
  const ends = endsOf(done);
  const { result, holds } = await accepted(ends, input, crew, books);
  settle(books, holds);
  return result;
}

/** Covers the parts that are done to their last element, and the texts that something was made from. */
function covered({ context = [], inputs = [] }: Input, { done, parts, doneParts }: Books): void {
  for (const { id, key } of parts.filter(({ id }) => doneParts.has(id))) {
    const serving = done.filter(({ step }) => step.parts.includes(id));
    if (serving.every(({ open }) => open.length === 0)) covers([key], serving[serving.length - 1]);
  }
  covers(context.map(({ name }) => name), done[done.length - 1]);
  for (const { name } of inputs) {
    const reader = done.find(({ step }) => step.reads.includes(name));
    if (reader) covers([name], reader);
    else log.warn(`no step has read ${name}`);
  }
}

const covers = (keys: readonly string[], { by }: Done) => cover(keys, typeof by === "object" && by !== null ? by : undefined);

const reported = ({ step, value, error }: Ended<Done>, status = value ? "succeeded" : error.kind === "skipped" ? "skipped" : "failed") => ({
  id: step.id, parts: step.parts, instruction: step.instruction, worker: step.worker, status, verdict: value?.verdict ?? error.kind ?? "threw",
  made: value?.values.slice(0, 100), reasons: value?.reasons ?? [error.message] });

const failures = (list: Ended<Done>[]) =>
  list.flatMap(({ step, error }) => (error ? [{ key: step.id, kind: error.kind, message: error.message, step: error.step }] : []));

/** The texts that no other text was made from; where there are none, what came of the acts. */
function endsOf(done: readonly Done[]): Done[] {
  const texts = done.filter(({ text }) => text);
  const of = texts.length > 0 ? texts : done;
  return of.filter(({ step }) => !of.some((other) => other.step.depends_on.includes(step.id) || other.step.reads.some((name) => step.writes.includes(name))));
}

const isList = (ends: readonly Done[]) => ends.length === 1 && ends[0].step.each !== "";

/** Returns the whole and whether it holds. A text that lacks no part and is sent back is put together again with the reasons, within the bounds of a step. */
async function accepted(ends: readonly Done[], input: Input, crew: Crew, books: Books): Promise<{ result: Body; holds: boolean }> {
  let evaluation: Evaluation | undefined;
  let result = await resultOf(ends, crew);
  // Each element of a list was judged by itself, and there is no one text of them.
  for (let tries = 0; !Array.isArray(result); tries++) {
    evaluation = await judgedWhole(result, input, crew, books);
    const mayHelp = evaluation?.verdict === "sent_back" && ends[0].text && books.open().length === 0;
    if (!evaluation || !mayHelp || !books.mayRedo(tries)) break;
    const again = await together(ends, crew, evaluation.reasons);
    if (again === undefined || books.again("the whole", [{ name: "", body: again }])) break;
    result = again;
  }
  if (evaluation && evaluation.verdict !== "passed") collect("evaluation", [{ key: "whole", kind: evaluation.verdict, message: evaluation.reasons.join("; ") }]);
  output("evaluation", evaluation ?? null);
  return { result, holds: evaluation ? evaluation.verdict === "passed" : isList(ends) && ends[0].open.length === 0 };
}

/** Returns the one text or value that there is, the texts of a list, or else all that there is put together. */
async function resultOf(ends: readonly Done[], crew: Crew): Promise<Body> {
  const bodies = ends.flatMap(({ values }) => values.map(({ body }) => body));
  if (isList(ends)) return bodies;
  if (ends.length === 1 && (bodies.length === 1 || !ends[0].text)) return bodies[0];
  return (await together(ends, crew)) ?? bodies;
}

async function together(ends: readonly Done[], { model, options, goal }: Crew, feedback?: readonly string[]): Promise<Body | undefined> {
  const texts = shown(ends.flatMap(({ values }) => values));
  try {
    return await generate({ model, options, prompt: assemble, item: goal, ...texts, feedback, label: "assemble" });
  } catch ({ kind, message, step }: any) {
    collect("assemble", [{ key: "whole", kind, message, step }]);
    return undefined;
  }
}

async function judgedWhole(subject: Body, { parts: said, context: sources = [] }: Input, crew: Crew, { parts }: Books): Promise<Evaluation | undefined> {
  // Parts that a model made of the goal may lack something of it.
  const whole = said || parts.every(({ text }) => text === crew.goal) ? [] : [`It achieves the whole goal: ${crew.goal}`];
  const criteria = [...parts.map(({ text }) => `It achieves this: ${text}`), ...whole, "It is the result itself, not a description of how to get it"];
  try {
    return await judged("the whole", { model: crew.judge, goal: crew.goal, criteria, subject, sources, label: "judge the whole" }, crew);
  } catch ({ kind, message, step }: any) {
    collect("evaluation", [{ key: "whole", kind, message, step }]);
    return undefined;
  }
}

/** What a new plan replaced is made good only when nothing is open and the whole holds without it. */
function settle(books: Books, holds: boolean): void {
  if (!holds || books.open().length > 0) {
    if (books.replaced.length > 0) collect("replaced steps", failures(books.replaced));
    return;
  }
  for (const { step, error } of books.replaced) {
    const reason = `a new plan replaced step ${step.id}`;
    if (error.child) waive(error.child, reason);
    else if (typeof error.step === "number") waive(error, reason);
  }
}
