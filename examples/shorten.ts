/** Makes a text shorter until it is short enough, within a bound. How long it is is counted, and no model's opinion. */
import { generate, output, read, t, tool, until } from "loopkeeper";

export const params = t.object({
  path: t.string({ description: "A file of the workspace" }),
  words: t.integer({ minimum: 10, description: "Most words it may have" }),
  model: t.string(),
  rounds: t.optional(t.integer({ minimum: 1, default: 5 })),
});

const count = (text: string) => text.split(/\s+/).filter(Boolean).length;

export default async function shorten({ path, words, model, rounds = 5 }: t.Of<typeof params>) {
  const { body } = await tool<{ body: { ref: string } }>("file.read", { path });

  const ended = await until({
    label: `at most ${words} words`,
    state: await read(body.ref),
    rounds,
    reached: (text) => count(text) <= words,
    round: (text, round) =>
      generate({ model, prompt: `Shorten this to ${words} words. It has ${count(text)}. Keep every fact.\n\n{{item}}`, item: text, schema: t.string(), label: `round ${round}` }),
  });

  // Not reached is no error: the run is incomplete, and the script says what it does then.
  output("text", ended.state);
  if (ended.reached) await tool("file.write", { path, body: ended.state, replaces: body.ref }); // only what was read is replaced
  return { short: ended.reached, rounds: ended.rounds };
}
