/** Takes facts out of files. Code looks for every quote in its file, so that what a model made up is sent back to it. */
import { batch, check, generate, output, read, t } from "loopkeeper";

const Fact = t.object({ claim: t.string({ maxLength: 200 }), quote: t.string({ description: "Copied from the file, word for word" }) });

export const params = t.object({
  files: t.files({ minItems: 1 }),
  model: t.string({ description: "A model, or a role such as small" }),
});

export default async function facts({ files, model }: t.Of<typeof params>) {
  const found = await batch({
    model,
    items: files,
    prompt: "List the facts in this file, each with a quote.\n\n{{item}}",
    schema: t.array(Fact),
    // Asked for each value before it counts. A reason sends it back, and the next attempt is given the reason.
    check: async (facts, file) => {
      const text = await read(file); // only a check that needs the body opens it
      return facts.filter(({ quote }) => !text.includes(quote)).map(({ quote }) => `this quote is not in the file: ${quote}`);
    },
    retry: { attempts: 3 },
  });
  output("facts", found);

  // The same for one value: make it, look at it, make it again with the reasons.
  return check(
    (reasons) => generate({ model, prompt: "Sum up these facts in one sentence of at most 30 words.\n\n{{item}}", item: found.values, feedback: reasons, schema: t.string() }),
    (sentence) => sentence.split(" ").length <= 30 || "it has more than 30 words",
    { attempts: 3, label: "sentence" },
  );
}
