// Puts together what the steps made, has the whole judged, and says what is missing.
import { collect, cover, evaluate, generate, log, output, waive } from "loopkeeper";
import type { Body, Evaluation } from "loopkeeper";
import type { Input } from "../plan";
import type { Books } from "./books";
import type { Ended } from "./graph";
import { decided } from "./people";
import type { Done } from "./step";
import { named, type Crew } from "./workers";

const assemble = "Put the given parts together into one result that achieves this goal. Leave nothing out and add nothing.\n\n{{item}}";

export async function finish({ context = [], inputs = [] }: Input, crew: Crew, books: Books): Promise<Body | undefined> {
  const { done, ended, replaced, parts, doneParts } = books;
  output("steps", [...done.filter((one) => !ended.some(({ value }) => value === one)).map((value) => shown({ step: value.step, value })),
    ...replaced.map((one) => shown(one, "replaced")), ...ended.map((one) => shown(one))]);
  if (ended.some(({ error }) => error)) collect("steps", failures(ended));
  if (done.length === 0) return log.error("no step succeeded, so there is no result"), undefined;

  const partly = new Set(done.filter(({ open }) => open.length > 0).flatMap(({ step }) => step.parts));
  cover(parts.filter(({ id }) => doneParts.has(id) && !partly.has(id)).map(({ key }) => key));
  const used = new Set(done.flatMap(({ step }) => step.reads));
  cover([...context.map(({ name }) => name), ...inputs.map(({ name }) => name).filter((name) => used.has(name))]);

  const ends = endsOf(done);
  const whole = ends.length === 1 ? ends[0] : undefined;
  if (whole && whole.values.length > 1 && whole.step.each !== "") { // each element was judged by itself, and nobody asked for one text of them
    settle(books, whole.open.length === 0);
    output("evaluation", null);
    return whole.values.map(({ body }) => body);
  }
  const result = whole && (whole.values.length === 1 || !whole.text) ? whole.values[0].body : await together(ends, crew);
  if (result === undefined) return settle(books, false), ends.flatMap(({ values }) => values.map(({ body }) => body));
  const evaluation = await judged(result, context, crew, books);
  settle(books, evaluation?.verdict === "passed");
  output("evaluation", evaluation ?? null);
  return result;
}

const shown = ({ step, value, error }: Ended<Done>, status = value ? "succeeded" : error.kind === "skipped" ? "skipped" : "failed") => ({
  id: step.id, parts: step.parts, instruction: step.instruction, worker: step.worker, status, verdict: value?.verdict ?? error.kind ?? "threw",
  made: value?.values.slice(0, 100), reasons: value?.reasons ?? [error.message] });

const failures = (list: Ended<Done>[]) => list.flatMap(({ step, error }) => (error ? [{ key: step.id, kind: error.kind, message: error.message, step: error.step }] : []));

/** The texts that no other text was made from; where there are none, what came of the acts. */
function endsOf(done: readonly Done[]): Done[] {
  const texts = done.filter(({ text }) => text);
  const of = texts.length > 0 ? texts : done;
  return of.filter((one) => !of.some(({ step }) => step.depends_on.includes(one.step.id) || step.reads.some((name) => one.names.includes(name))));
}

async function together(ends: readonly Done[], { model, options, goal }: Crew): Promise<Body | undefined> {
  const parts = named(ends.flatMap(({ values }) => values));
  return generate({ model, options, prompt: assemble, item: goal, context: parts, label: "assemble" }).catch(({ kind, message, step }) => {
    collect("assemble", [{ key: "whole", kind, message, step }]);
    return undefined;
  });
}

async function judged(subject: Body, sources: readonly Body[], crew: Crew, { parts }: Books): Promise<Evaluation | undefined> {
  const criteria = [...parts.map(({ text }) => `It achieves this: ${text}`), "It is the result itself, not a description of how to get it"];
  try {
    const said = await evaluate({ model: crew.judge, goal: crew.goal, criteria, subject, sources, label: "judge the whole" });
    const evaluation = await decided("the whole", said, [subject], crew);
    if (evaluation.verdict !== "passed") collect("evaluation", [{ key: "whole", kind: evaluation.verdict, message: evaluation.reasons.join("; ") }]);
    return evaluation;
  } catch ({ kind, message, step }: any) {
    collect("evaluation", [{ key: "whole", kind, message, step }]);
    return undefined;
  }
}

/** What a new plan replaced is made good only when nothing is open and the whole holds without it. */
function settle(books: Books, holds: boolean): void {
  if (!holds || books.open().length > 0) return books.replaced.length > 0 ? collect("replaced steps", failures(books.replaced)) : undefined;
  for (const { step, error } of books.replaced) {
    const reason = `a new plan replaced step ${step.id}`;
    if (error.child) waive(error.child, reason);
    else if (typeof error.step === "number") waive(error, reason);
  }
}
