/** Develops what is requested in ten phases, from questions to an archive. What it knows of a project is a folder of texts. */
import { cover, log, pipeline, t, waive } from "loopkeeper";
import type { Ref } from "loopkeeper";
import { acceptance } from "./pipeline/acceptance";
import { archive } from "./pipeline/archive";
import { clarify } from "./pipeline/clarify";
import { codeQuality } from "./pipeline/code-quality";
import { decompose } from "./pipeline/decompose";
import { design } from "./pipeline/design";
import { endToEnd } from "./pipeline/end-to-end";
import { implement } from "./pipeline/implement";
import { review } from "./pipeline/review";
import { testPlan } from "./pipeline/test-plan";

export const params = t.object({
  request: t.string({ minLength: 1, description: "What is to be developed" }),
  knowledge: t.files({ minItems: 1, description: "The project's texts: project, architecture, conventions and testing, with any ending" }),
  model: t.string({ format: "model", description: "The model that works" }),
  judge: t.optional(t.string({ format: "model", description: "The model that judges, by default the same" })),
  people: t.optional(t.boolean({ default: true, description: "Whether people are asked: open questions, the end-to-end test, acceptance" })),
  folder: t.optional(t.string({ description: "The folder of the workspace that the files are written to; without it they are an output only" })),
  max_rollbacks: t.optional(t.integer({ minimum: 0, default: 5, description: "How often it may go back to an earlier phase" })),
  options: t.optional(t.record(t.any(), { description: "Ollama's model options" })),
});

const phasesOf = [clarify, design, decompose, testPlan, review, implement, codeQuality, endToEnd, acceptance, archive];

export default async function run({ request, knowledge, model, judge = model, people = true, folder = "", max_rollbacks = 5, options }: t.Of<typeof params>) {
  const phases = phasesOf.map((phase) => phase({ model, judge, people, options }));
  const made = new Set([...phases.map(({ name }) => name), "request", "folder"]);
  const wanted = [...new Set(phases.flatMap(({ needs = [] }) => needs))].filter((name) => !made.has(name));

  const texts = new Map<string, Ref>(knowledge.map((text) => [nameOf(text), text]));
  const missing = wanted.filter((name) => !texts.has(name));
  if (missing.length > 0) {
    throw new Error(`the project's texts lack ${missing.map((name) => `${name} (for ${phases.filter(({ needs }) => needs?.includes(name)).map(({ name }) => name).join(", ")})`).join(", ")}`);
  }
  for (const text of knowledge.filter((text) => !wanted.includes(nameOf(text)))) {
    log.warn(`no phase needs ${text.name}; they need ${wanted.join(", ")}`);
    waive(text.name, "no phase needs it");
  }

  const inputs = { request, folder, ...Object.fromEntries(wanted.map((name) => [name, texts.get(name)])) };
  const results = await pipeline({ name: "development", phases, inputs, max_rollbacks });
  cover(wanted.map((name) => texts.get(name)!.name));
  return results.archive;
}

/** "knowledge/testing.md" is the text testing. */
const nameOf = ({ name }: Ref) => name.replace(/^.*[\/\\]/, "").replace(/\.[^.]*$/, "");
