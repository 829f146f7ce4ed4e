// When two steps may run at the same time.
import type { PlanStep } from "loopkeeper";

/**
 * Returns why a step has to wait for one before it although it does not depend on it; undefined when they may run at the same time.
 * That is so when the inputs of both are determined, neither depends on the other (which the graph says), they share no writes,
 * each writes into a place of its own, and the failure of one leaves the other as it is.
 */
export function whyApart(step: PlanStep, earlier: PlanStep, irreversible: (step: PlanStep) => boolean): string | undefined {
  const named = needed(step, earlier.writes);
  if (named !== undefined) return `it needs ${named}, which ${earlier.id} writes, so its input is not determined before`;
  const changed = needed(earlier, step.writes);
  if (changed !== undefined) return `it writes ${changed}, which ${earlier.id} needs`;
  const shared = step.writes.filter((name) => earlier.writes.includes(name));
  if (shared.length > 0) return `both write ${shared.join(", ")}`;
  for (const a of step.writes) {
    const b = earlier.writes.find((other) => within(a, other) || within(other, a));
    if (b !== undefined) return `${a} and ${b} are not places of their own`;
  }
  if (irreversible(step) && irreversible(earlier)) return "neither can be undone, and what one did would stay when the other fails";
  return undefined;
}

/** Returns the first of the names that a step reads, or that its instruction speaks of. */
function needed({ instruction, reads }: PlanStep, names: readonly string[]): string | undefined {
  const words = instruction.split(/[^a-zA-Z0-9_./-]+/).map((word) => word.replace(/\.+$/, ""));
  const said = (name: string) => words.includes(name) || [...reads, ...words].some((word) => word.includes("/") && within(word, name));
  return names.find((name) => reads.includes(name) || said(name));
}

const within = (name: string, folder: string) => name.startsWith(folder.replace(/\/*$/, "/"));
