/** Deals items out to N runs of another workflow, like cards, and waits for all of them. */
import { cover, each, expect, output, spawn, t } from "loopkeeper";
import type { Ref } from "loopkeeper";

export const params = {
  ...t.object({
    workflow: t.string({ minLength: 1, description: "The workflow that each run is of: a built-in one, or one that was added" }),
    slices: t.integer({ minimum: 1, description: "How many runs there are at most" }),
    items: t.optional(t.array(t.any(), { minItems: 1, description: "What is dealt out, such as addresses of sites" })),
    files: t.optional(t.files({ minItems: 1, description: "What is dealt out: files" })),
    into: t.optional(t.string({ default: "items", description: "The parameter of that workflow that takes its share" })),
    input: t.optional(t.record(t.any(), { description: "Its other parameters, the same for each run" })),
    limits: t.optional(t.record(t.number(), { description: "Limits of each run, such as tokens" })),
  }),
  oneOf: [{ required: ["items"] }, { required: ["files"] }],
};

const nameOf = (item: unknown, i: number) => (typeof item === "string" ? item : (item as Ref | null)?.name ?? `item ${i + 1}`);

export default async function partition({ workflow, slices, files, items = files ?? [], into = "items", input = {}, limits }: t.Of<typeof params>) {
  const all = items.map((item, i) => ({ item, key: nameOf(item, i) }));
  const hands = Array.from({ length: Math.min(slices, all.length) }, (_, n) => all.filter((_, i) => i % slices === n));
  expect(all.map(({ key }) => key));

  const runs = await each(hands, async (hand, n) => {
    const label = `slice ${n + 1} of ${hands.length}`;
    const report = await spawn({ workflow, input: { ...input, [into]: hand.map(({ item }) => item) }, limits, label });
    cover(hand.map(({ key }) => key), report); // counts as much as that run did
    return report;
  }, { key: (_, n) => `slice ${n + 1}`, concurrency: hands.length, label: "slices" });

  output("runs", runs.items.map(({ value: report, failure }, n) => ({
    slice: n + 1, items: hands[n].map(({ key }) => key), run: report?.run, state: report?.state ?? failure?.kind, coverage: report?.coverage ?? 0 })));
  const results = runs.values.filter(({ outputs }) => "result" in outputs).map(({ outputs }) => outputs.result);
  return results.every(Array.isArray) ? results.flat() : results;
}
