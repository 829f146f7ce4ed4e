/** Answers a question from a folder: reads what is nearest to it, page by page, and has another run look over the answer. */
import { all, batch, embed, evaluate, generate, log, output, pages, plan, spawn, t, tool, uuid } from "loopkeeper";
import type { Ref } from "loopkeeper";

export const params = t.object({
  question: t.string(),
  folder: t.string({ description: "A folder of the workspace" }),
  model: t.string(),
  embedder: t.string(),
});

type Entry = { path: string; kind: string };

export default async function answer({ question, folder, model, embedder }: t.Of<typeof params>) {
  const id = uuid(); // the same in every replay

  // Named branches, side by side.
  const { steps, texts } = await all({
    steps: () => plan({ model, goal: question, max_steps: 3 }),
    texts: async () => {
      const found: Ref[] = [];
      const list = (after: string | null) => tool("file.list", { path: folder, recursive: true, limit: 100, ...(after && { after }) });
      // Page after page until there is no next one, or until the bound: then the run is incomplete.
      for await (const page of pages<Entry>(list, { most: 20 })) {
        for (const { path, kind } of page) if (kind === "file") found.push((await tool("file.read", { path })).body);
      }
      return found;
    },
  });

  const [wanted, ...vectors] = await embed({ model: embedder, inputs: [question, ...texts] });
  const near = (vector: number[]) => vector.reduce((sum, x, i) => sum + x * wanted[i], 0);
  const nearest = texts.map((text, i) => ({ text, score: near(vectors[i]) })).sort((a, b) => b.score - a.score).slice(0, 20);
  log(`${texts.length} files, the nearest is ${nearest[0]?.text.name}`);

  const notes = await batch({ model, items: nearest.map(({ text }) => text), prompt: `What does this say about: ${question}\n\n{{item}}` });
  if (steps.outcome !== "plan") log.warn(`there is no plan: ${[steps.note, ...steps.questions].join(" ")}`); // the planner had to know something, or gave up
  const text = await generate({ model, prompt: `Answer: ${question}\n\n{{item}}`, item: steps.steps, context: notes.values });
  output("judgement", await evaluate({ model, criteria: ["every claim is in the notes", { text: "it is no longer than it has to be", must: false }], subject: text, sources: notes.values, goal: question }));

  // Another run, with its own books. Its report comes whatever its end; a detached one is only started.
  const look = await spawn({ workflow: "map", input: { model, prompt: "What is missing here?\n\n{{item}}", items: [text] } });
  if (look.state !== "completed") log.warn(`the second look ended as ${look.state}`);
  await spawn({ workflow: "map", input: { model, prompt: "Translate to German.\n\n{{item}}", items: [text] }, detached: true, key: id });
  return text;
}
