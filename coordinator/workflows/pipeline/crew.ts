// What the phases have in common: who works, and what a phase that is done again is given.
import { gate } from "loopkeeper";
import type { Body, Gate, PhaseContext } from "loopkeeper";

export type Crew = { model: string; judge: string; people: boolean; options?: { [name: string]: any } };

/** What was made before, for `context`. */
export const before = ({ previous }: PhaseContext): Body[] => (previous === undefined ? [] : ["What this phase made before is next.", previous]);

/** Why it is done again, for a call. */
export const because = ({ reasons }: PhaseContext) => (reasons.length > 0 ? { feedback: reasons.map(({ from, reason }) => `${from}: ${reason}`) } : {});

/** Goes back when what a phase makes is never accepted, because then the fault is in what it was given. Other errors end the pipeline. */
export const orBack = (target: string) => (error: any): Gate => {
  if (error.kind !== "sent_back" && error.kind !== "check_failed" && error.kind !== "needs_human") throw error;
  return gate.sent_back(target, error.message);
};
