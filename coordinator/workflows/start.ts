/** Starts N runs of another workflow and returns. Each has its own books and keeps its own result. */
import { each, spawn, t } from "loopkeeper";

export const params = t.object({
  workflow: t.string({ minLength: 1, description: "The workflow that is started: a built-in one, or one that was added" }),
  inputs: t.array(t.record(t.any()), { minItems: 1, description: "The parameters of each run" }),
  shared: t.optional(t.record(t.any(), { description: "Parameters that are the same for each run" })),
  names: t.optional(t.array(t.string({ minLength: 1 }), { uniqueItems: true, description: "A name for each run, by default its number" })),
  key: t.optional(t.string({ minLength: 1, description: "Starting the same name under the same key again gives the run that is there" })),
  limits: t.optional(t.record(t.number(), { description: "Limits of each run, such as tokens" })),
});

export default async function start({ workflow, inputs, shared = {}, names, key, limits }: t.Of<typeof params>) {
  if (names && names.length !== inputs.length) throw new Error(`there are ${names.length} names for ${inputs.length} inputs`);
  const name = (_: unknown, i: number) => names?.[i] ?? String(i + 1);
  const started = await each(inputs, async (input, i) => {
    const own = name(input, i);
    const { run } = await spawn({
      workflow, input: { ...shared, ...input }, limits, detached: true, label: `start ${own}`, ...(key && { key: `${key}/${own}` }) });
    return { name: own, run };
  }, { key: name, label: "start" });
  return { started: started.values, of: inputs.length };
}
