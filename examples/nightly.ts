/** Sorts a long list every night, pays only for what is new, and says what became of each line that failed. */
import { batch, cover, each, expect, fallback, generate, output, pages, t, waive } from "loopkeeper";

const Sorted = t.object({ topic: t.enum(["bug", "wish", "praise", "other"]), urgent: t.boolean() });

export const params = t.object({
  messages: t.lines({ description: "A file with one JSON value a line, or a folder" }),
  small: t.string({ description: "The model that sorts" }),
  large: t.string({ description: "The model for what the small one cannot do" }),
});

export default async function nightly({ messages, small, large }: t.Of<typeof params>) {
  expect(["summary"]); // beside every line there has to be this in the end

  const prompt = "Sort this message.\n\n{{item}}";
  const sorted = await batch({ model: small, prompt, items: messages, schema: Sorted, reuse: true });

  // Of a long list the script holds one page at a time.
  const counts: Record<string, number> = {};
  for await (const page of pages(sorted, { only: "succeeded" })) {
    for (const { value } of page) if (value) counts[value.topic] = (counts[value.topic] ?? 0) + 1;
  }

  // A failure that is neither waived nor made good makes the run incomplete.
  for await (const page of pages(sorted, { only: "failed" })) {
    await each(page, async (failed) => {
      if (failed.failure?.kind === "sent_back") return waive(failed, "it is not worth a second try");
      const value = await fallback(failed, () => generate({ model: large, prompt: `Sort message ${failed.key}, which a small model could not.`, schema: Sorted }));
      counts[value.topic] = (counts[value.topic] ?? 0) + 1;
    }, { label: "second try" });
  }

  output("counts", counts, { sources: [sorted] });
  const summary = await generate({ model: large, prompt: "Two sentences about these counts.\n\n{{item}}", item: counts });
  cover(["summary"], summary);
  return summary;
}
