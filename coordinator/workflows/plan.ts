/** Splits a goal into steps, does them as parallel as their graph allows, judges each, plans anew at a wall, and judges the whole. */
import { collect, cover, evaluate, generate, log, output, plan, t, waive } from "loopkeeper";
import type { PlanStep, Ref } from "loopkeeper";
import { carryOut, failed, type Ended } from "./plan/graph";
import { criteria, doStep, type Done } from "./plan/step";

export const params = t.object({
  goal: t.string({ minLength: 1, description: "What is to be achieved" }),
  planner: t.string({ format: "model", description: "The model that plans" }),
  model: t.string({ format: "model", description: "The model that does the steps" }),
  judge: t.optional(t.string({ format: "model", description: "The model that judges, by default the planner" })),
  context: t.optional(t.files({ description: "Texts that every step is given" })),
  max_steps: t.optional(t.integer({ minimum: 1, default: 8, description: "Most steps of one plan" })),
  attempts: t.optional(t.integer({ minimum: 1, default: 3, description: "Tries of one step in all" })),
  replans: t.optional(t.integer({ minimum: 0, default: 2, description: "How often there may be a new plan for what is left" })),
  options: t.optional(t.record(t.any(), { description: "Ollama's model options" })),
});

export default async function run({ goal, planner, model, judge = planner, context = [], ...input }: t.Of<typeof params>) {
  const { max_steps = 8, attempts = 3, replans = 2, options } = input;
  const done: Done[] = [], replaced: Ended<Done>[] = [];
  let ended: Ended<Done>[] = [];

  // What was done is kept: the planner plans what is left, and each new step is given it.
  for (let round = 0; ; round++) {
    const kept = [...context, ...done.map(({ text }) => text)];
    const walls = ended.filter(({ error }) => error);
    const steps = await newPlan(round, kept, walls).catch((error) => {
      if (round === 0) throw error;
      collect("new plan", [{ key: `plan ${round + 1}`, kind: error.kind, message: error.message, step: error.step }]);
    });
    if (!steps) break;
    replaced.push(...walls);
    ended = await carryOut<Done>(steps, (step, inputs) => doStep(step, steps, goal, [...kept, ...inputs.map(({ text }) => text)], { model, judge, attempts, options }));
    done.push(...ended.flatMap(({ value }) => value ?? []));
    if (ended.every(({ value }) => value) || round === replans) break;
    log.warn(`${ended.filter(({ error }) => error).length} of ${steps.length} steps are not done: ${ended.find(({ error }) => error)?.error.message}`);
  }

  async function newPlan(round: number, kept: readonly Ref[], walls: Ended<Done>[]): Promise<PlanStep[]> {
    const facts = done.map(({ step }) => `- ${step.id}: ${step.goal}`).join("\n") || "- nothing yet";
    const made = await plan({
      model: planner, goal, max_steps, label: round === 0 ? "plan" : `plan ${round + 1}`, ...(round === 0 ? { context } : {
        context: [...kept, `Done already. The results are above, and every step is given them. Plan only what is left:\n${facts}`],
        feedback: walls.map(({ step, error }) => `${step.goal}: ${error.kind === "not_in_plan" ? "something has to be done before: " : ""}${error.message}`) }) });
    const steps = made.order.map((id) => made.steps.find((step) => step.id === id) as PlanStep);
    const known = [...done, ...walls].map(({ step }) => step.goal);
    if (round > 0 && steps.every(({ goal }) => known.includes(goal))) throw failed("no_progress", "the new plan is the one that failed");
    const name = (id: string) => (round === 0 ? id : `${round + 1}.${id}`); // the ids of earlier plans may come again
    return steps.map((step) => ({ ...step, id: name(step.id), depends_on: step.depends_on.map(name) }));
  }

  const shown = ({ step, value, error }: Ended<Done>, status: string) => ({
    id: step.id, goal: step.goal, status, verdict: value?.evaluation.verdict ?? error.kind, text: value?.text, reasons: value?.evaluation.reasons ?? [error.message] });
  const now = ended.map((one) => shown(one, one.value ? "succeeded" : one.error.kind === "skipped" ? "skipped" : "failed"));
  const earlier = done.filter((one) => !ended.some(({ value }) => value === one)).map((value) => shown({ step: value.step, value }, "succeeded"));
  output("steps", [...earlier, ...replaced.map((one) => shown(one, "replaced")), ...now]);
  const failures = (list: Ended<Done>[]) => list.flatMap(({ step, error }) => (error ? [{ key: step.id, kind: error.kind, message: error.message, step: error.step }] : []));
  if (ended.some(({ error }) => error)) collect("steps", failures(ended));

  const ends = done.filter(({ step }) => !done.some((other) => other.step.depends_on.includes(step.id)));
  if (ends.length === 0) return log.error("no step succeeded, so there is no result");
  const parts = ends.map(({ text }) => text);
  const result = ends.length === 1 ? parts[0] : await generate({ model, prompt: assemble, item: goal, context: parts, options, label: "assemble" });
  cover(context.map(({ name }) => name), result);
  const whole = await evaluate({ model: judge, goal, criteria: criteria(goal), subject: result, sources: context, label: "judge the whole" })
    .catch(({ kind, message, step }) => collect("evaluation", [{ key: "whole", kind, message, step }]));
  if (whole && whole.verdict !== "passed") collect("evaluation", [{ key: "whole", kind: whole.verdict, message: whole.reasons.join("; ") }]);
  // What a new plan replaced is made good only when the whole holds without it.
  if (whole?.verdict === "passed" && ended.every(({ value }) => value)) {
    for (const { step, error } of replaced) if (typeof error.step === "number") waive(error, `a new plan replaced step ${step.id}`);
  } else if (replaced.length > 0) collect("replaced steps", failures(replaced));
  output("evaluation", whole ?? null);
  return result;
}

const assemble = "Put the given parts together into one result that achieves this goal. Leave nothing out and add nothing.\n\n{{item}}";
