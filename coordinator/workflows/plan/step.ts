// Does one step of a plan, and has a judge look at it.
import { evaluate, generate, read } from "loopkeeper";
import type { Evaluation, PlanStep, Ref, Text } from "loopkeeper";
import { failed } from "./graph";

export type Done = { step: PlanStep; text: Text; evaluation: Evaluation };
export type Crew = { model: string; judge: string; attempts: number; options?: { [name: string]: any } };

const prompt = `Carry out one step of a plan. The results of the steps it depends on are given. Answer with the result of this step only.
If it cannot be done before something else is, and no step of the plan does that, answer with one line: NOT IN THE PLAN: what has to be done.

{{item}}`;

export const criteria = (goal: string) => [`The text achieves this goal: ${goal}`, "It is the result itself, not a description of how to get it"];

/** Makes the step's text until its judge accepts it, within the bound; throws what is in the way. */
export async function doStep(step: PlanStep, plan: readonly PlanStep[], goal: string, texts: readonly Ref[], { model, judge, attempts, options }: Crew): Promise<Done> {
  const others = plan.map(({ id, goal }) => `- ${id}: ${goal}`).join("\n");
  const item = `The goal of the whole: ${goal}\n\nThe plan:\n${others}\n\nYour step, ${step.id}: ${step.goal}`;
  const feedback: string[] = [];
  for (let attempt = 1; ; attempt++) {
    const text = await generate({ model, prompt, item, context: texts, options, label: step.id, ...(attempt > 1 && { feedback }) });
    const missing = await notInThePlan(text);
    if (missing !== undefined) throw failed("not_in_plan", missing);
    const evaluation = await evaluate({
      model: judge, goal: step.goal, criteria: criteria(step.goal), subject: text, sources: texts, label: `judge ${step.id}` });
    if (evaluation.verdict === "passed") return { step, text, evaluation };
    if (evaluation.verdict === "needs_human" || attempt >= attempts) throw failed(evaluation.verdict, evaluation.reasons.join("; "));
    feedback.push(...evaluation.reasons);
  }
}

// One line is short: what is longer is a result, and is not opened.
const longest = 1000; // bytes

async function notInThePlan(text: Text): Promise<string | undefined> {
  if (text.bytes > longest) return undefined;
  return /^\W*NOT IN THE PLAN\W+(.+)/i.exec(await read(text))?.[1].trim();
}
