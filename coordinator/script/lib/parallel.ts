// Control flow over several functions at the same time. Neither swallows a failure.
import type * as api from "loopkeeper";
import { collected, keyOf } from "./collected";
import { collect } from "./notes";

const defaultConcurrency = 16;

export async function each<I, T>(
  items: readonly I[],
  work: (item: I, index: number) => T | Promise<T>,
  options: api.EachOptions<I> = {},
): Promise<api.Collected<T>> {
  const name = options.key ?? keyOf;
  const ended: api.Item<T>[] = new Array(items.length);
  let next = 0;
  const worker = async () => {
    while (next < items.length) {
      const index = next++;
      ended[index] = await attempt(name(items[index], index), index, () => work(items[index], index));
    }
  };
  const workers = Math.min(items.length, Math.max(1, options.concurrency ?? defaultConcurrency));
  await Promise.all(Array.from({ length: workers }, worker));

  const succeeded = ended.filter((item) => item.status === "succeeded").length;
  const total = items.length;
  const result = collected({ total, succeeded, failed: total - succeeded, coverage: total === 0 ? 1 : succeeded / total, items: ended });
  if (succeeded < total) collect(options.label ?? "each", result.failures);
  return result;
}

async function attempt<T>(key: string, index: number, work: () => T | Promise<T>): Promise<api.Item<T>> {
  try {
    return { index, key, status: "succeeded", value: await work() };
  } catch (error) {
    return { index, key, status: "failed", failure: failureOf(error) };
  }
}

function failureOf(error: unknown): api.Failure {
  if (!(error instanceof Error)) return { kind: "threw", message: String(error) };
  const { kind = "threw", step } = error as Partial<api.StepError>;
  return { kind, message: error.message, step };
}

export async function all(branches: { readonly [name: string]: Promise<unknown> | (() => unknown) }): Promise<any> {
  const names = Object.keys(branches);
  const values: Record<string, unknown> = {};
  const failures: Record<string, unknown> = {};
  const run = async (name: string) => {
    const branch = branches[name];
    try {
      values[name] = await (typeof branch === "function" ? branch() : branch);
    } catch (error) {
      failures[name] = error;
    }
  };
  await Promise.all(names.map(run));
  const failed = names.filter((name) => name in failures);
  if (failed.length > 0) throw branchesFailed(failed, failures, names.length);
  return Object.fromEntries(names.map((name) => [name, values[name]]));
}

// The error has the stack of the first branch that failed, because that is the place to look at.
function branchesFailed(failed: string[], failures: Record<string, unknown>, of: number): Error {
  const reasons = failed.map((name) => `${name}: ${failureOf(failures[name]).message}`);
  const error = new Error(`${failed.length} of ${of} branches failed: ${reasons.join("; ")}`);
  const cause = failures[failed[0]];
  if (cause instanceof Error) error.stack = cause.stack;
  return Object.assign(error, { cause, failures });
}
