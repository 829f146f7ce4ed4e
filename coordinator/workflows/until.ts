/** Makes a text, and makes it again with the reasons, until it is what was asked for, within a bound. Code counts; a judge may be asked too. */
import { cover, evaluate, generate, output, read, t, until as repeat } from "loopkeeper";
import type { Ref } from "loopkeeper";

export const params = t.object({
  model: t.string({ format: "model", description: "The model that writes" }),
  task: t.string({ minLength: 1, description: "What the text is to be" }),
  start: t.optional(t.file({ description: "The text to begin with; without it the first round writes one" })),
  context: t.optional(t.files({ description: "Texts that every round is given" })),
  rounds: t.optional(t.integer({ minimum: 1, default: 5, description: "How often it is written at most" })),
  max_words: t.optional(t.integer({ minimum: 1, description: "Most words it may have" })),
  min_words: t.optional(t.integer({ minimum: 1, description: "Words it has to have" })),
  contains: t.optional(t.array(t.string({ minLength: 1 }), { description: "Words that have to be in it, as they stand" })),
  lacks: t.optional(t.array(t.string({ minLength: 1 }), { description: "Words that must not be in it" })),
  criteria: t.optional(t.array(t.string(), { description: "What a judge has to find true, after all that code can see" })),
  judge: t.optional(t.string({ format: "model", description: "The model that judges, by default the one that writes" })),
  options: t.optional(t.record(t.any(), { description: "Ollama's model options" })),
});

type State = { text?: Ref; reasons: readonly string[] };

export default async function until({ model, judge = model, task, context = [], rounds = 5, options, ...goal }: t.Of<typeof params>) {
  // Why a text is not yet what was asked for. What code can see comes first, because it costs nothing and is certain.
  async function look(text: Ref, label: string): Promise<State> {
    const reasons = faults(await read(text), goal);
    if (reasons.length > 0 || !goal.criteria) return { text, reasons };
    const { verdict, reasons: because } = await evaluate({ model: judge, criteria: goal.criteria, subject: text, sources: context, goal: task, label });
    return { text, reasons: verdict === "passed" ? [] : because.length > 0 ? because : [verdict] };
  }

  const ended = await repeat<State>({
    label: "the text is what was asked for",
    state: goal.start ? await look(goal.start, "judge the start") : { reasons: ["there is no text yet"] },
    rounds,
    reached: ({ reasons }) => reasons.length === 0,
    round: async ({ text, reasons }, round) => {
      const earlier = text ? [`The text so far is the last one given. It is not accepted yet:\n- ${reasons.join("\n- ")}`, text] : [];
      const prompt = "Write the whole text that this task asks for, and nothing else.\n\n{{item}}";
      return look(await generate({ model, options, prompt, item: task, context: [...context, ...earlier], label: `round ${round}` }), `judge round ${round}`);
    },
  });

  const { text, reasons } = ended.state;
  if (text) cover([...context, ...(goal.start ? [goal.start] : [])].map(({ name }) => name), text === goal.start ? undefined : text);
  output("end", { reached: ended.reached, rounds: ended.rounds, reasons }, { sources: [text] });
  return text;
}

function faults(text: string, { max_words, min_words, contains = [], lacks = [] }: Omit<t.Of<typeof params>, "model" | "task">): string[] {
  const words = text.split(/\s+/).filter(Boolean).length;
  return [
    ...(words === 0 ? ["it is empty"] : []),
    ...(max_words !== undefined && words > max_words ? [`it has ${words} words, and may have ${max_words}`] : []),
    ...(min_words !== undefined && words < min_words ? [`it has ${words} words, and needs ${min_words}`] : []),
    ...contains.filter((part) => !text.includes(part)).map((part) => `it lacks "${part}"`),
    ...lacks.filter((part) => text.includes(part)).map((part) => `it has "${part}"`),
  ];
}
