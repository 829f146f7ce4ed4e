import type * as api from "loopkeeper";
import { likewise, sourceOf } from "./sources";

type Counted<T> = Omit<api.Collected<T>, "values" | "failures">;

/** Where a failure is in the ledger: a step, and the item of a batch. */
export interface Place {
  step: number;
  item?: number;
}

const places = new WeakMap<object, Place>();

/** Adds the views `values` and `failures` to what a batch (at a position) or each returned. They are not part of its JSON. */
export function collected<T>(counted: Counted<T>, position?: number): api.Collected<T> {
  if (counted.handle !== undefined) return beyondLimit(counted);
  if (position !== undefined) placeItems(counted.items, position);
  return Object.defineProperties(counted, {
    values: { get: () => counted.items.filter((item) => item.status === "succeeded").map(valueOf) },
    failures: { get: () => counted.items.filter((item) => item.failure).map(failureOf) },
  }) as api.Collected<T>;
}

function beyondLimit<T>(counted: Counted<T>): api.Collected<T> {
  const get = (name: string) => () => {
    throw new Error(`this batch has ${counted.total} items, more than a script holds at once, so it has no \`${name}\`: ` +
      "walk them with `for await (const page of pages(result))`, or the failures with `pages(result, { only: \"failed\" })`");
  };
  for (const name of ["items", "values", "failures"]) Object.defineProperty(counted, name, { get: get(name) });
  return counted as api.Collected<T>;
}

/** Notes that items are those of the batch at a position. */
export function placeItems(items: readonly api.Item<unknown>[], step: number): void {
  for (const item of items) places.set(item, { step, item: item.index });
}

/** Returns the place of a failure: one of a batch, a step's error, or a child's report. */
export function placeOf(failure: any): Place | undefined {
  const known = places.get(failure);
  if (known) return known;
  const step = failure.step ?? sourceOf(failure);
  return typeof step === "number" ? { step } : undefined;
}

// An item without a schema has a reference where others have a value.
function valueOf<T>(item: api.Item<T>): unknown {
  return item.ref === undefined ? item.value : likewise({ ref: item.ref, name: item.key, bytes: item.bytes }, item);
}

function failureOf<T>(item: api.Item<T>): object {
  const failure = likewise({ index: item.index, key: item.key, ...item.failure }, item);
  const place = places.get(item);
  if (place) places.set(failure, place);
  return failure;
}

/** Returns the default name of an item: a reference's own name, else its number. */
export function keyOf(item: unknown, index: number): string {
  const name = (item as api.Ref | null | undefined)?.name;
  return typeof name === "string" ? name : String(index);
}
