import { generate, question, t } from "loopkeeper";
import type { Phase } from "loopkeeper";
import { because, before, type Crew } from "./crew";

const prompt = `Say what this request asks for as goals, each a sentence that can be checked. Then name the questions whose answer would change what is
built, and that the texts of the project do not answer. None is a good answer.

{{item}}`;
const Clear = t.object({ goals: t.array(t.string(), { minItems: 1, maxItems: 12 }), questions: t.array(t.string(), { maxItems: 5 }) });

/** Asks a person what is open, and is given the answers. */
export const clarify = ({ model, options, people }: Crew): Phase => ({
  name: "clarify",
  needs: ["request", "project"],
  async run({ request, project }, at) {
    const { goals, questions } = await generate({
      model, options, prompt, item: request, context: [project, ...before(at)], schema: Clear, ...because(at), label: "clarify" });
    const ask = async (text: string) => (people ? (await question({ text, label: "clarify" })).answer : "nobody was asked; take what is usual in the project");
    const answers = await Promise.all(questions.map(async (text) => ({ question: text, answer: await ask(text) })));
    return { request, goals, answers };
  },
});
