/** Asks judges, each alone, about subjects of which the answer is known. `loopkeeper judges calibrate` makes the subjects and keeps the rates. */
import { each, evaluate, output, t } from "loopkeeper";

export const params = t.object({
  judges: t.array(t.string({ minLength: 1, format: "model", description: "A model, by its name" }), { minItems: 1, description: "Who is asked" }),
  subjects: t.array(
    t.object({
      subject: t.string({ minLength: 1 }),
      criterion: t.string({ minLength: 1 }),
      type: t.optional(t.string()),
      expected: t.enum(["met", "not_met"], { description: "What is right; no judge is told" }),
      defect: t.optional(t.string()),
    }),
    { minItems: 2, description: "What they are asked about" },
  ),
  again: t.optional(t.integer({ minimum: 0, default: 0, description: "How many subjects they are asked about once more, to see whether they say the same" })),
});

type Ask = { judge: string; subject: number; pass: "first" | "reversed" | "again" };

export default async function calibrate({ judges, subjects, again = 0 }: t.Of<typeof params>) {
  const passes = subjects.flatMap((_, subject) => [
    { subject, pass: "first" as const },
    { subject, pass: "reversed" as const },
    ...(subject < again ? [{ subject, pass: "again" as const }] : []),
  ]);
  const asks: Ask[] = passes.flatMap((ask) => judges.map((judge) => ({ ...ask, judge })));
  const label = ({ judge, subject, pass }: Ask) => `${judge} on subject ${subject + 1}, ${pass}`;

  const answers = await each(asks, async (ask) => {
    const { subject, criterion, type } = subjects[ask.subject]!;
    const said = await evaluate({ model: ask.judge, subject, criteria: [{ text: criterion, ...(type ? { type } : {}) }], label: label(ask), reversed: ask.pass === "reversed" });
    const [first] = said.criteria[0]?.by ?? []; // a judge that cannot tell is asked once more, which is not what is measured here
    return {
      said: first?.said ?? "", counted: first?.counted ?? "", quoted: said.facts.length > 0, forged: said.opinions.some((o) => o.includes("it is nowhere")),
      digest: said.judges[0]?.digest ?? "", family: said.judges[0]?.family ?? "", node: said.judges[0]?.node ?? "",
    };
  }, { key: label, concurrency: 24 * judges.length, label: "asked" });

  // One list for each judge: what a run keeps at one place is bounded.
  for (const judge of judges) {
    output(`answers of ${judge}`, answers.items.flatMap(({ value, failure }, i) => {
      const { subject, pass, judge: by } = asks[i]!;
      return by === judge ? [{ subject, pass, ...(value ?? { failed: failure?.kind ?? "failed" }) }] : [];
    }));
  }
  return { asked: asks.length, answered: answers.values.length };
}
