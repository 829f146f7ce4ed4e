/** Designs, builds and reviews in phases. A phase that finds a gap goes back to the one that left it, with the reason. */
import { evaluate, gate, generate, pipeline, question, t } from "loopkeeper";

export const params = t.object({
  wish: t.string({ description: "What is wanted" }),
  rules: t.file({ description: "What every design has to follow" }),
  model: t.string(),
  judge: t.string(),
});

export default async function feature({ wish, rules, model, judge }: t.Of<typeof params>) {
  return pipeline({
    name: "feature",
    inputs: { wish, rules },
    max_rollbacks: 3,
    phases: [
      {
        name: "clarify",
        needs: ["wish"],
        run: async ({ wish }, at) => {
          const { open } = await generate({ model, prompt: "What is the one thing that is unclear here?\n\n{{item}}", item: { wish, reasons: at.reasons }, schema: t.object({ open: t.string() }) });
          const { answer } = await question({ text: open });
          return { wish, answer };
        },
      },
      {
        name: "design",
        needs: ["clarify", "rules"], // a phase is given these by name, and nothing else
        run: ({ clarify, rules }, at) =>
          generate({ model, prompt: "Design this.\n\n{{item}}", item: { ...clarify, reasons: at.reasons }, context: [rules] }),
        gate: async (design, { rules }) =>
          gate.of(await evaluate({ model: judge, criteria: "every rule is followed", subject: design, sources: [rules] }), { back_to: "clarify" }),
      },
      {
        name: "build",
        needs: ["design"],
        run: ({ design }) => generate({ model, prompt: "Build this.\n\n{{item}}", item: design, schema: t.object({ code: t.string(), gap: t.optional(t.string()) }) }),
        gate: ({ gap }) => (gap ? gate.sent_back("design", gap) : gate.needs_human("Is it what was wanted?", { back_to: "clarify" })),
      },
    ],
  });
}
