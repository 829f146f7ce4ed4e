// Judges, and a person where none can tell.
import { approve, evaluate, waive } from "loopkeeper";
import type { Evaluation, EvaluateRequest, StepError } from "loopkeeper";
import type { Crew } from "./workers";

/** Has something judged. A person decides where no judge can, or where there is none to be had. */
export async function judged(what: string, request: EvaluateRequest, crew: Crew): Promise<Evaluation> {
  let failure: StepError | undefined;
  const evaluation = await evaluate(request).catch((error) => {
    if (!crew.people || typeof error.step !== "number") throw error;
    failure = error;
    return without(`there is no judge to be had: ${error.kind}: ${error.message}`);
  });
  if (evaluation.verdict !== "needs_human" || !crew.people) return evaluation;
  const will = "A yes takes it as done. A no sends it back with your comment.";
  const { outcome, comment, by } = await approve({ title: `Is ${what} done?`, text: evaluation.reasons.join("\n"), show: [request.subject], will, label: `decide ${what}` });
  if (failure) waive(failure, "a person decided in place of the judge");
  if (outcome === "approved") return { ...evaluation, verdict: "passed", rule: "person", reasons: [`${by} took it as done`] };
  return { ...evaluation, verdict: "sent_back", rule: "person", reasons: [comment || "a person said no"] };
}

const without = (reason: string): Evaluation => ({ verdict: "needs_human", rule: "no_judge", reasons: [reason], facts: [], opinions: [], criteria: [], judges: [] });
