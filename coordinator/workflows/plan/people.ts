// When a person decides.
import { approve, collect } from "loopkeeper";
import type { Body, Evaluation } from "loopkeeper";
import type { Books } from "./books";
import { failed } from "./graph";
import type { Part } from "./parts";
import type { Crew } from "./workers";

/** Throws unless a person allows what cannot be undone. */
export async function permitted(id: string, instruction: string, show: readonly Body[], { people }: Crew): Promise<void> {
  if (!people) throw failed("needs_human", "it cannot be undone, and nobody is asked");
  const { outcome, comment } = await approve({ title: `Step ${id}: ${instruction}`, show, will: "It is done, and cannot be undone.", label: `allow ${id}` });
  if (outcome !== "approved") throw failed("rejected", `a person said no${comment ? `: ${comment}` : ""}`);
}

/** Has a person decide where no judge can. */
export async function decided(what: string, evaluation: Evaluation, show: readonly Body[], { people }: Crew): Promise<Evaluation> {
  if (evaluation.verdict !== "needs_human" || !people) return evaluation;
  const will = "A yes takes it as done. A no sends it back with your comment.";
  const { outcome, comment, by } = await approve({ title: `Is ${what} done?`, text: evaluation.reasons.join("\n"), show, will, label: `decide ${what}` });
  if (outcome === "approved") return { ...evaluation, verdict: "passed", reasons: [`${by} took it as done`] };
  return { ...evaluation, verdict: "sent_back", reasons: [comment || "a person said no"] };
}

/** Asks what becomes of parts that a new plan did not move. Without a person, or with a no, it ends there. */
export async function goOn(open: readonly Part[], { people }: Crew, books: Books): Promise<boolean> {
  if (!people) return noProgress("nobody is asked");
  const { outcome, comment } = await approve({
    title: "The plan makes no progress", text: [...open.map(({ key }) => key), ...books.facts].join("\n"), label: "no progress",
    will: "A yes plans the open parts once more, with your comment as a fact. A no ends here, and keeps what is done." });
  if (comment) books.told(`A person says: ${comment}`);
  return outcome === "approved" || noProgress("a person ended it");
}

function noProgress(then: string): false {
  collect("plan", [{ key: "no progress", kind: "needs_human", message: `a new plan did not move the open parts, and ${then}` }]);
  return false;
}
