// What the script declares about its own work: what must be there, and what becomes of a failure.
import type * as api from "loopkeeper";
import { placeOf } from "./collected";
import { here, note } from "./host";
import { sourcesOf, stepsSoFar } from "./sources";

export function expect(keys: readonly string[]): void {
  note("expect", { keys });
}

export function cover(keys: readonly string[], by?: unknown): void {
  if (by === undefined) return note("cover", { keys });
  const place = typeof by === "object" && by !== null ? placeOf(by) : undefined;
  const step = place?.step ?? sourcesOf(by).pop();
  if (step === undefined) throw new TypeError("cover: `by` is nothing that a step delivered");
  note("cover", { keys, step, item: place?.item });
}

export function waive(failure: unknown, reason: string): void {
  if (typeof reason !== "string" || reason === "") throw new TypeError("waive needs a reason, a text that is not empty");
  const place = typeof failure === "object" && failure !== null ? placeOf(failure) : undefined;
  const key = typeof failure === "string" ? failure : (failure as { key?: string } | null)?.key;
  if (place) note("waive", { ...place, reason });
  else if (key !== undefined) note("waive", { key, reason });
  else throw new TypeError("waive needs a failure, an error of a step, a child's report or an expected key");
}

export async function fallback(primary: unknown, other: (failure: any) => unknown): Promise<any> {
  let failure: any = primary;
  if (typeof primary === "function" || primary instanceof Promise) {
    try {
      return await (typeof primary === "function" ? primary() : primary);
    } catch (error) {
      failure = error;
    }
  }
  const from = here();
  const value = await other(failure);
  const by = sourcesOf(value).filter((step) => step >= from).pop() ?? stepsSoFar().filter((step) => step >= from).pop();
  for (const place of failedPlaces(failure)) {
    if (by !== undefined) note("fallback", { ...place, by });
    else note("waive", { ...place, reason: "the workflow has a value of its own for it" });
  }
  return value;
}

/** Returns every step that a failure speaks of: branches of `all` may be several. */
function failedPlaces(failure: any): { step: number; item?: number }[] {
  if (typeof failure !== "object" || failure === null) return [];
  const place = placeOf(failure);
  if (place) return [place];
  return failure.failures ? Object.values(failure.failures).flatMap(failedPlaces) : [];
}
