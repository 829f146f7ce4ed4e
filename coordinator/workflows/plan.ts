/** Splits a goal into steps, does them as parallel as their graph allows, judges each step and then the whole. */
import { collect, each, evaluate, generate, log, output, plan, t } from "loopkeeper";
import type { Evaluation, PlanStep, Text } from "loopkeeper";

export const params = t.object({
  goal: t.string({ minLength: 1, description: "What is to be achieved" }),
  planner: t.string({ description: "The model that plans" }),
  model: t.string({ description: "The model that does the steps" }),
  judge: t.optional(t.string({ description: "The model that judges, by default the planner" })),
  context: t.optional(t.files({ description: "Texts that every step is given" })),
  max_steps: t.optional(t.integer({ minimum: 1, default: 8 })),
  attempts: t.optional(t.integer({ minimum: 1, default: 3, description: "Tries of one step in all" })),
  options: t.optional(t.record(t.any(), { description: "Ollama's model options" })),
});

type Done = { step: PlanStep; text: Text; evaluation: Evaluation };

export default async function run({ goal, planner, model, judge = planner, context = [], ...input }: t.Of<typeof params>) {
  const { max_steps = 8, attempts = 3, options } = input;
  const made = await plan({ model: planner, goal, context, max_steps, label: "plan" });
  const steps = made.order.map((id) => made.steps.find((step) => step.id === id) as PlanStep);
  const running = new Map<string, Promise<Done>>();

  // One step after those it depends on and those it must not run beside. `order` puts both before it.
  async function carryOut(step: PlanStep): Promise<Done> {
    const earlier = steps.slice(0, steps.indexOf(step));
    const apart = earlier.filter((other) => mustNotRunBeside(step, other));
    for (const other of apart) log(`step ${step.id} waits for ${other.id}: ${mustNotRunBeside(step, other)}`);
    await Promise.allSettled(apart.map((other) => running.get(other.id)));
    const inputs = await Promise.all(step.depends_on.map((id) => running.get(id)!.catch((error) => Promise.reject(
      failed("skipped", `skipped, because it needs step ${id}: ${error.message}`)))));
    const texts = [...context, ...inputs.map((done) => done.text)];
    const item = `The goal of the whole: ${goal}\n\nYour step: ${step.goal}`;
    const feedback: string[] = [];
    for (let attempt = 1; ; attempt++) {
      const text = await generate({ model, prompt: doStep, item, context: texts, options, label: step.id, ...(attempt > 1 && { feedback }) });
      const evaluation = await evaluate({
        model: judge, goal: step.goal, criteria: criteria(step.goal), subject: text, sources: texts, label: `judge ${step.id}` });
      if (evaluation.verdict === "passed") return { step, text, evaluation };
      if (evaluation.verdict === "needs_human" || attempt >= attempts) throw failed(evaluation.verdict, evaluation.reasons.join("; "));
      feedback.push(...evaluation.reasons);
    }
  }

  const results = await each(steps, (step) => {
    const work = carryOut(step);
    running.set(step.id, work);
    return work;
  }, { key: (step) => step.id, concurrency: steps.length, label: "steps" });

  output("steps", results.items.map(({ value, failure }, i) => ({
    id: steps[i].id, goal: steps[i].goal, status: value ? "succeeded" : failure?.kind === "skipped" ? "skipped" : "failed",
    verdict: value?.evaluation.verdict ?? failure?.kind, text: value?.text, reasons: value?.evaluation.reasons ?? [failure?.message] })));
  const ends = results.values.filter((done) => !results.values.some((other) => other.step.depends_on.includes(done.step.id)));
  if (ends.length === 0) return log.error("no step succeeded, so there is no result");

  const parts = ends.map((end) => end.text);
  const result = ends.length === 1 ? parts[0] : await generate({ model, prompt: assemble, item: goal, context: parts, options, label: "assemble" });
  const whole = await each([result], (subject) => evaluate({
    model: judge, goal, criteria: criteria(goal), subject, sources: context, label: "judge the whole" }), { key: () => "whole", label: "evaluation" });
  for (const { verdict, reasons } of whole.values) {
    if (verdict !== "passed") collect("evaluation", [{ key: "whole", kind: verdict, message: reasons.join("; ") }]);
  }
  output("evaluation", whole.values[0] ?? null);
  return result;
}

const doStep = "Carry out one step of a plan. The results of the steps it depends on are given. Answer with the result of this step only.\n\n{{item}}";
const assemble = "Put the given parts together into one result that achieves this goal. Leave nothing out and add nothing.\n\n{{item}}";
const criteria = (goal: string) => [`The text achieves this goal: ${goal}`, "It is the result itself, not a description of how to get it"];
const failed = (kind: string, message: string) => Object.assign(new Error(message), { kind });

function mustNotRunBeside(a: PlanStep, b: PlanStep): string | false {
  const shared = a.writes.filter((name) => b.writes.includes(name));
  if (shared.length > 0) return `both write ${shared.join(", ")}`;
  return a.external && b.external && "both act on something outside";
}
