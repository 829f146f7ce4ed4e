// Does the steps of a graph, as parallel as they may be.
import { log } from "loopkeeper";
import type { PlanStep } from "loopkeeper";
import { whyApart } from "./apart";

/** How a step ended: with a value or with an error. */
export type Ended<T> = { step: PlanStep; value?: T; error?: any };

export const failed = (kind: string, message: string) => Object.assign(new Error(message), { kind });

const never = () => false;

/**
 * Does each step after those it depends on and those it must not run beside. `steps` are in an order that puts both before it. It
 * does not throw: a step that fails ends with its error, and what needs it is skipped.
 */
export async function carryOut<T>(
  steps: readonly PlanStep[], work: (step: PlanStep, inputs: T[]) => Promise<T>, irreversible: (step: PlanStep) => boolean = never,
): Promise<Ended<T>[]> {
  const under = new Map<string, Promise<Ended<T>>>();

  async function one(step: PlanStep, earlier: readonly PlanStep[]): Promise<Ended<T>> {
    const needed = needs(step, steps);
    for (const other of earlier.filter(({ id }) => !needed.has(id))) {
      const why = whyApart(step, other, irreversible);
      if (why === undefined) continue;
      log(`step ${step.id} waits for ${other.id}: ${why}`);
      await under.get(other.id);
    }
    const inputs = await Promise.all(step.depends_on.map((id) => under.get(id)!));
    const lacking = inputs.find(({ error }) => error);
    if (lacking) return { step, error: failed("skipped", `skipped, because it needs step ${lacking.step.id}: ${lacking.error.message}`) };
    try {
      return { step, value: await work(step, inputs.map(({ value }) => value as T)) };
    } catch (error) {
      return { step, error };
    }
  }

  steps.forEach((step, i) => under.set(step.id, one(step, steps.slice(0, i))));
  return Promise.all(under.values());
}

/** Returns all that a step depends on, directly or through others. */
function needs(step: PlanStep, steps: readonly PlanStep[]): Set<string> {
  const found = new Set<string>();
  for (const id of step.depends_on) {
    found.add(id);
    for (const further of needs(steps.find((other) => other.id === id)!, steps)) found.add(further);
  }
  return found;
}
