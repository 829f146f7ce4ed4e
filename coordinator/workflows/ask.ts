/** Chooses a workflow for a request and fills in its parameters, in one call. It starts nothing. */
import { generate, t } from "loopkeeper";
import { choiceOf, faults, type Choice } from "./ask/choice";

export const params = t.object({
  request: t.string({ minLength: 1, description: "What is wanted, in plain words" }),
  model: t.string({ format: "model", description: "The model that chooses" }),
  workflows: t.array(t.object({ name: t.string(), about: t.string(), params: t.optional(t.record(t.any(), { description: "JSON Schema" })) }), {
    minItems: 1, description: "The workflows there are, with what each takes",
  }),
  models: t.optional(t.array(t.string(), { description: "The models and roles that a parameter may name; without it any" })),
  files: t.optional(t.array(t.string(), { description: "The paths that a parameter may name; without it any" })),
  attempts: t.optional(t.integer({ minimum: 1, default: 3 })),
});

const prompt = `Choose the workflow that does what is requested, and fill in its parameters. Use only what the request says; leave out optional
parameters that it says nothing about. A file is named as "@" and its path, several as a list or as "@" and a pattern such as "@docs/*.md". Where a
parameter is a prompt for a model, write the prompt that is needed.

{{item}}`;

export default async function ask({ request, model, workflows, models, files, attempts = 3 }: t.Of<typeof params>): Promise<Choice> {
  return generate({
    model, prompt, label: "choose", retry: { attempts },
    item: { request, workflows: workflows.map(({ name, about }) => ({ name, about })), models, files },
    schema: choiceOf(workflows, models),
    check: (choice) => faults(choice, workflows, { models, files }),
  });
}
