// When a person decides.
import { approve, collect } from "loopkeeper";
import type { Body } from "loopkeeper";
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
