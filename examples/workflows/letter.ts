/** Writes one letter, and puts it into a file when somebody has read it. */
import { approve, generate, t, tool, until } from "loopkeeper";
import type { Text } from "loopkeeper";

export const params = t.object({ to: t.string(), about: t.string(), folder: t.string(), model: t.string() });

type State = { letter?: Text; wishes: string[]; read: boolean };

export default async function letter({ to, about, folder, model }: t.Of<typeof params>) {
  const { reached, state } = await until<State>({
    label: "somebody has read it", state: { wishes: [], read: false }, rounds: 3, reached: ({ read }) => read,
    round: async ({ letter, wishes }) => {
      const next = await generate({ model, prompt: "Write this letter, half a page.\n\n{{item}}", item: { to, about }, context: letter && [letter], feedback: wishes, label: `to ${to}` });
      const { outcome, comment } = await approve({ title: `The letter to ${to}`, show: [next], will: "It is put into the folder of letters." });
      return { letter: next, read: outcome === "approved", wishes: [...wishes, comment] };
    },
  });
  if (reached) return (await tool<{ path: string }>("file.write", { path: `${folder}/${to}.txt`, body: state.letter, folders: true })).path;
}
