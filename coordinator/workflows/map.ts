/** Calls a model once for each item. The answers come back in input order, with coverage and failures. */
import { batch, t } from "loopkeeper";

export const params = {
  ...t.object({
    model: t.string({ format: "model", description: "The model that does the work" }),
    prompt: t.string({ description: "The task for each item; {{item}} stands for the item's text" }),
    items: t.optional(t.array(t.anyOf(t.file(), t.any()), { minItems: 1, description: "What is worked on: texts or other values" })),
    files: t.optional(t.files({ minItems: 1, description: "What is worked on: files, each an item" })),
    lines: t.optional(t.lines({ description: "What is worked on: a folder, or a file of one JSON value a line, of any length" })),
    keys: t.optional(t.array(t.string(), { description: "A name for each item, by default its file name or number" })),
    schema: t.optional(t.record(t.any(), { format: "json-schema", description: "JSON Schema of each answer; without it answers are text" })),
    system: t.optional(t.string({ description: "System prompt" })),
    context: t.optional(t.files({ description: "Texts that every item is given" })),
    evaluate: t.optional(
      t.object({ criteria: t.anyOf(t.string(), t.array(t.string())), model: t.string({ format: "model" }) }, { description: "A judge of each answer" }),
    ),
    reuse: t.optional(t.boolean({ description: "Take accepted answers to the same from earlier runs" })),
    uses: t.optional(t.array(t.string(), { description: "Resources that each call holds, such as browser" })),
    retry: t.optional(t.object({ attempts: t.integer({ minimum: 1 }) }, { description: "Tries of one item in all, default 3" })),
    max_tokens: t.optional(t.integer({ minimum: 1, description: "Most tokens of one answer" })),
    temperature: t.optional(t.number({ minimum: 0, description: "0 for the same answer each time" })),
    think: t.optional(t.boolean({ description: "Let the model think first" })),
    options: t.optional(t.record(t.any(), { description: "Ollama's model options" })),
  }),
  oneOf: [{ required: ["items"] }, { required: ["files"] }, { required: ["lines"] }],
};

export default async function map({ files, lines, items = files ?? [], ...request }: t.Of<typeof params>) {
  return batch({ ...request, items: lines ?? items });
}
