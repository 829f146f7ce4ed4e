// Code that judges: as an option of a call, answered when the host asks, and as a primitive of its own.
import type * as api from "loopkeeper";
import { canonical } from "./border";
import { log } from "./notes";
import { withoutFacts } from "./text";

export type Judging = (value: any, item: any, index: number) => api.Checked | Promise<api.Checked>;

interface Open {
  judging: Judging;
  items: readonly unknown[];
  plainText: boolean;
}

const open = new Map<number, Open>();

/** Keeps a call's check while the call is under way. */
export async function asked<T>(
  position: number, judging: Judging, items: readonly unknown[], plainText: boolean, work: () => Promise<T>,
): Promise<T> {
  if (typeof judging !== "function") throw new TypeError("check must be a function");
  open.set(position, { judging, items, plainText });
  try {
    return await work();
  } finally {
    open.delete(position);
  }
}

/** Answers the host's question whether a value of the call at a position is good. */
export async function answer({ pos, item, value, about }: { pos: number; item: number; value: any; about?: unknown }): Promise<string> {
  const at = open.get(pos);
  if (!at) throw new Error(`no check is under way for step ${pos}`);
  if (at.plainText) withoutFacts(value);
  const reasons = reasonsOf(await at.judging(value, item < at.items.length ? at.items[item] : about, item));
  return canonical(reasons.length === 0 ? { passed: true } : { passed: false, reasons }, "the check");
}

/** Returns why a check sends back; nothing when it passed. */
function reasonsOf(checked: api.Checked): string[] {
  if (checked === true || checked === "") return [];
  if (checked === false) return ["it did not pass the workflow's check"];
  if (typeof checked === "string") return [checked];
  if (Array.isArray(checked) && checked.every((reason) => typeof reason === "string")) return checked;
  throw new TypeError("a check returns true, false, a reason, or a list of reasons that is empty when all is well");
}

export async function check(
  work: unknown, judging: (value: any) => api.Checked | Promise<api.Checked>, options: { attempts?: number; label?: string } = {},
): Promise<any> {
  const attempts = typeof work === "function" ? options.attempts ?? 3 : 1;
  let reasons: string[] = [];
  for (let attempt = 1; ; attempt++) {
    const value = await (typeof work === "function" ? work(reasons, attempt) : work);
    reasons = reasonsOf(await judging(value));
    if (reasons.length === 0) return value;
    log(`${options.label ?? "check"}: sent back (${attempt} of ${attempts}): ${reasons.join("; ")}`);
    if (attempt >= attempts) throw Object.assign(new Error(reasons.join("; ")), { kind: "sent_back", reasons });
  }
}
