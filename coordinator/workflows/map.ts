/** Calls a model once for each item. The answers come back in input order, with coverage and failures. */
import { batch, t } from "loopkeeper";

export const params = t.object({
  model: t.string({ description: "The model that does the work" }),
  prompt: t.string({ description: "The task for each item; {{item}} stands for the item's text" }),
  items: t.array(t.anyOf(t.file(), t.any()), { minItems: 1, description: "Files or values" }),
  keys: t.optional(t.array(t.string(), { description: "A name for each item, by default its file name or number" })),
  schema: t.optional(t.record(t.any(), { format: "json-schema", description: "JSON Schema of each answer; without it answers are text" })),
  system: t.optional(t.string({ description: "System prompt" })),
  context: t.optional(t.files({ description: "Texts that every item is given" })),
  evaluate: t.optional(
    t.object({ criteria: t.anyOf(t.string(), t.array(t.string())), model: t.string() }, { description: "A judge of each answer" }),
  ),
  retry: t.optional(t.object({ attempts: t.integer({ minimum: 1 }) }, { description: "Tries of one item in all, default 3" })),
  max_tokens: t.optional(t.integer({ minimum: 1, description: "Most tokens of one answer" })),
  temperature: t.optional(t.number({ minimum: 0 })),
  think: t.optional(t.boolean({ description: "Let the model think first" })),
  options: t.optional(t.record(t.any(), { description: "Ollama's model options" })),
});

export default async function map(input: t.Of<typeof params>) {
  return batch(input);
}
