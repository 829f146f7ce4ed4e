/** Reviews each file against a set of rules. A second model checks every review before it counts. */
import { batch, output, t } from "loopkeeper";

const Finding = t.object({
  line: t.integer({ minimum: 1 }),
  quote: t.string({ description: "The words in question, copied from the file" }),
  problem: t.string({ maxLength: 400 }),
});

// Checked before the run starts; `"@path"` in the input uploads a file, and the script receives a reference to it.
export const params = t.object({
  files: t.files({ minItems: 1, description: "What is reviewed" }),
  rules: t.file({ description: "What it is reviewed against" }),
  model: t.string({ description: "The model that reviews" }),
  judge: t.optional(t.string({ description: "The model that checks the reviews, by default the same" })),
});

export default async function review({ files, rules, model, judge = model }: t.Of<typeof params>) {
  const reviews = await batch({
    model,
    prompt: "Review the file against the rules. List every place that breaks a rule; an empty list is a good answer.\n\n{{item}}",
    items: files,
    context: [rules], // stored once, sent first, kept warm
    schema: t.array(Finding),
    evaluate: { criteria: ["every problem follows from one of the rules", "every quote occurs in the file"], model: judge },
    retry: { attempts: 3 },
  });

  // A batch is its own source: each finding still knows the step it came from.
  output("findings", reviews.items.map(({ key, value = [] }) => ({ file: key, findings: value })));

  const found = reviews.values.reduce((sum, findings) => sum + findings.length, 0);
  console.log(`${found} findings in ${reviews.succeeded} of ${reviews.total} files`);
  return { files: reviews.total, reviewed: reviews.succeeded, findings: found };
}
