/** Has a model write reports from facts, so that it can be seen whether it judges its own words otherwise. */
import { each, generate, read, t } from "loopkeeper";

export const params = t.object({ model: t.string(), facts: t.array(t.string()) });

const prompt = "Write a short report of these facts: a title, and then a list with a full sentence of your own for each fact. Keep every name and every number.\n\n{{item}}";

export default async function reports({ model, facts }: t.Of<typeof params>) {
  const written = await each(facts, async (item) => read(await generate({ model, prompt, item, label: "report" })));
  return written.items.map(({ value }) => value ?? "");
}
