/** Writes a letter to each person, has somebody read it, and puts it into a file in the morning. */
import { approve, each, generate, question, sleep, t, tool } from "loopkeeper";

export const params = t.object({
  people: t.array(t.object({ name: t.string(), about: t.string() }), { minItems: 1 }),
  model: t.string(),
  send_at: t.optional(t.string({ format: "date-time", description: "When the letters go out, by default in a minute" })),
});

export default async function letters({ people, model, send_at }: t.Of<typeof params>) {
  // A question waits as long as it takes: over a restart, over an upgrade, without holding any memory.
  const { answer: tone } = await question({ text: "In which tone?", choices: ["friendly", "formal"], timeout_seconds: 86_400, on_timeout: "formal" });

  return each(people, async ({ name, about }) => {
    const letter = await generate({ model, prompt: `Write a ${tone} letter of half a page.\n\n{{item}}`, item: { name, about }, label: name });

    // Here each letter waits for its own yes; the others go on meanwhile.
    const { outcome, comment } = await approve({ title: `The letter to ${name}`, show: [letter], will: "It is put into the folder of letters." });
    if (outcome === "rejected") throw new Error(comment || "rejected");

    await sleep(send_at ? { until: send_at } : { seconds: 60 });
    // A write outside is recorded before and after, so that a crash in between is seen.
    return tool<{ path: string }>("file.write", { path: `letters/${name}.txt`, body: letter, folders: true });
  }, { key: ({ name }) => name, label: "letters" });
}
