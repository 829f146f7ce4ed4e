/** Answers for each of many items, a chunk of them in one call, asks again for those an answer left out, and puts all together. */
import { batch, cover, expect, generate, log, output, pages, t, waive } from "loopkeeper";
import type { Item, Json, Schema } from "loopkeeper";
import { chunked, distinct, grouped, rowsOf, type Group, type Row } from "./map-reduce/chunks";

export const params = {
  ...t.object({
    model: t.string({ format: "model", description: "The model that answers" }),
    prompt: t.string({ minLength: 1, description: "What is to be answered for each item" }),
    items: t.optional(t.array(t.anyOf(t.file(), t.any()), { minItems: 1, description: "Texts or other values" })),
    files: t.optional(t.files({ minItems: 1, description: "Files, each an item; they should be short" })),
    lines: t.optional(t.lines({ description: "A file of one JSON value a line, or a folder; at most 16 MiB" })),
    keys: t.optional(t.array(t.string(), { uniqueItems: true, description: "A name for each item, by default its file name or number" })),
    answer: t.optional(t.record(t.any(), { format: "json-schema", description: "JSON Schema of the answer for one item; without it a text" })),
    context: t.optional(t.files({ description: "Texts that every chunk is given, such as the rule to decide by" })),
    chunk: t.optional(t.integer({ minimum: 1, default: 20, description: "How many items go into one call" })),
    rounds: t.optional(t.integer({ minimum: 1, default: 3, description: "How often an item is asked for, each time in a smaller chunk" })),
    unique: t.optional(t.string({ description: "The field of an answer by which two are the same, such as a verdict or an address" })),
    reduce: t.optional(t.object({ prompt: t.string(), model: t.optional(t.string({ format: "model" })) }, { description: "One last call that is given all values" })),
    reuse: t.optional(t.boolean({ description: "Take accepted answers to the same chunk from earlier runs" })),
    options: t.optional(t.record(t.any(), { description: "Ollama's model options" })),
  }),
  oneOf: [{ required: ["items"] }, { required: ["files"] }, { required: ["lines"] }],
};

const ask = "Below are numbered items. Answer for each of them: one row with its number n, and its answer. Leave none out.";

export default async function mapReduce(input: t.Of<typeof params>) {
  const { model, prompt, context = [], options, chunk = 20, rounds = 3 } = input;
  const { groups, order } = await grouped(input); // what is the same is asked for once
  const answers = new Map<Group, Row>();
  const failed: { item: Item<Row[]>; groups: Group[] }[] = [];
  expect(order.map(([key]) => key));

  const Rows = t.array(t.object({ n: t.integer({ minimum: 1 }), answer: (input.answer as Schema<Json> | undefined) ?? t.string() }));
  let open = groups;
  for (let round = 1; open.length > 0 && round <= rounds; round++) {
    const chunks = chunked(open, Math.ceil(chunk / 2 ** (round - 1)));
    const found = await batch({
      model, options, context: [...context, ask, `The question for each item: ${prompt}`], prompt: "{{item}}", schema: Rows, label: `round ${round}`,
      reuse: round === 1 ? input.reuse : undefined, items: chunks.map((part) => part.map(({ body }, i) => ({ n: i + 1, item: body }))),
      keys: chunks.map((_, i) => `round ${round}, chunk ${i + 1} of ${chunks.length}`),
    });
    for await (const page of pages(found)) {
      for (const item of page) {
        const part = chunks[item.index];
        if (item.value === undefined) failed.push({ item, groups: part });
        for (const [group, row] of rowsOf(item, part)) {
          answers.set(group, row);
          cover(group.keys, item); // what the chunk's answer held, and no more
        }
      }
    }
    open = open.filter((group) => !answers.has(group));
    if (open.length > 0) log(`round ${round}: ${open.length} of ${groups.length} have no answer`);
  }
  for (const { item, groups } of failed) {
    if (groups.every((group) => answers.has(group))) waive(item, "each of its items was answered in a later round");
  }

  const values = distinct(groups, answers, input.unique);
  const sources = [...answers.values()];
  output("answers", order.flatMap(([key, group]) => (answers.has(group) ? [{ key, answer: answers.get(group)!.answer }] : [])), { sources });
  output("counts", { items: order.length, distinct: groups.length, missing: open.flatMap((group) => group.keys) }, { sources });
  if (!input.reduce || values.length === 0) return values;
  output("values", values, { sources });
  return generate({ model: input.reduce.model ?? model, options, prompt: input.reduce.prompt, item: values, context, label: "reduce" });
}
