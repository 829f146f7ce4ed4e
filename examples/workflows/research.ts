/** Writes what is known of each topic into a file of its own: one share of a research. */
import { each, generate, t, tool } from "loopkeeper";

export const params = t.object({ topics: t.array(t.string(), { minItems: 1 }), folder: t.string(), model: t.string() });

export default async function research({ topics, folder, model }: t.Of<typeof params>) {
  return each(topics, async (topic) => {
    const { questions } = await generate({ model, prompt: "What would somebody have to know about this? Three questions.\n\n{{item}}", item: topic,
      schema: t.object({ questions: t.array(t.string(), { minItems: 3, maxItems: 3 }) }), label: `questions on ${topic}` });
    const text = await generate({ model, prompt: "Answer these questions. Say where you are not sure.\n\n{{item}}", item: { topic, questions }, label: topic });
    const { path } = await tool<{ path: string }>("file.write", { path: `${folder}/${topic.replace(/\W+/g, "-")}.md`, body: text, folders: true });
    return path;
  }, { key: (topic) => topic, label: "topics" });
}
