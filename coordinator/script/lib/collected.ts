import type * as api from "loopkeeper";
import { likewise } from "./sources";

type Counted<T> = Omit<api.Collected<T>, "values" | "failures">;

/** Adds the views `values` and `failures` to what a batch or each returned. They are not part of its JSON. */
export function collected<T>(counted: Counted<T>): api.Collected<T> {
  return Object.defineProperties(counted, {
    values: { get: () => counted.items.filter((item) => item.status === "succeeded").map(valueOf) },
    failures: { get: () => counted.items.filter((item) => item.failure).map(failureOf) },
  }) as api.Collected<T>;
}

// An item without a schema has a reference where others have a value.
function valueOf<T>(item: api.Item<T>): unknown {
  return item.ref === undefined ? item.value : likewise({ ref: item.ref, name: item.key, bytes: item.bytes }, item);
}

function failureOf<T>(item: api.Item<T>): object {
  return likewise({ key: item.key, ...item.failure }, item);
}

/** Returns the default name of an item: a reference's own name, else its number. */
export function keyOf(item: unknown, index: number): string {
  const name = (item as api.Ref | null | undefined)?.name;
  return typeof name === "string" ? name : String(index);
}
