// Repeats until a state is reached that code can check.
import type * as api from "loopkeeper";
import { note } from "./host";

const named = new Map<string, number>();

/** Of one label the last note counts, so two loops never share one. */
function unlike(label: string): string {
  const times = (named.get(label) ?? 0) + 1;
  named.set(label, times);
  return times === 1 ? label : `${label} (${times})`;
}

export async function until<S>(request: api.UntilRequest<S>): Promise<api.Reached<S>> {
  if (!(Number.isInteger(request.rounds) && request.rounds >= 0)) throw new TypeError("until needs rounds, how often it may try at most");
  const label = unlike(request.label ?? "until");
  let state = request.state;
  for (let round = 0; ; round++) {
    const reached = await request.reached(state, round);
    if (typeof reached !== "boolean") throw new TypeError("reached must return true or false, so that the end can be checked");
    note("until", { label, round, reached });
    if (reached || round === request.rounds) return { reached, rounds: round, state };
    state = await request.round(state, round + 1);
  }
}
