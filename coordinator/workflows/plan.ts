/** Splits a goal into parts and steps, does them as parallel as their graph allows, judges each, plans anew at a wall, and judges the whole. */
import { collect, expect, log, t } from "loopkeeper";
import { Books } from "./plan/books";
import { finish } from "./plan/finish";
import { carryOut, type Ended } from "./plan/graph";
import { goOn } from "./plan/people";
import { partsOf } from "./plan/parts";
import { nextPlan } from "./plan/planner";
import { doStep, type Done } from "./plan/step";
import { crewOf, Worker } from "./plan/workers";

export const params = t.object({
  goal: t.string({ minLength: 1, description: "What is to be achieved" }),
  planner: t.string({ format: "model", description: "The model that plans" }),
  model: t.string({ format: "model", description: "The model that does the steps" }),
  judge: t.optional(t.string({ format: "model", description: "The model or role that judges, by default the planner" })),
  parts: t.optional(t.array(t.string({ minLength: 1 }), { minItems: 1, description: "The parts of the goal; without them a goal of several sentences is split" })),
  workers: t.optional(t.record(Worker, { description: "Who does the steps, by name; without it one that writes texts" })),
  inputs: t.optional(t.files({ description: "Texts that steps may read, by name" })),
  context: t.optional(t.files({ description: "Texts that the planner and every step are given" })),
  lists: t.optional(t.record(t.any(), { description: "Lists, or lines, by name: a step may do the same for each element of one" })),
  max_steps: t.optional(t.integer({ minimum: 1, maximum: 40, default: 8, description: "Most steps of one plan" })),
  people: t.optional(t.boolean({ default: true, description: "Whether people are asked; without them what needs one is not done" })),
  options: t.optional(t.record(t.any(), { description: "Ollama's model options" })),
});

export type Input = t.Of<typeof params>;

export default async function run(input: Input) {
  const crew = await crewOf(input);
  const parts = await partsOf(input);
  expect(parts.map(({ key }) => key));
  const books = new Books(crew.texts, parts);

  for (let round = 0; ; round++) {
    const before = books.state();
    const steps = await nextPlan(crew, books, round).catch((error) => {
      if (round === 0) throw error;
      collect("new plan", [{ key: `plan ${round + 1}`, kind: error.kind, message: error.message, step: error.step }]);
    });
    if (!steps) break;
    const ended: Ended<Done>[] = await carryOut<Done>(steps, (step) => doStep(step, crew, books), ({ worker }) => crew.workers[worker]?.irreversible === true);
    books.close(ended);
    const open = books.open();
    if (open.length === 0) break;
    log.warn(`open after plan ${round + 1}: ${open.map(({ key }) => key).join("; ")}`);
    if (round > 0 && books.state() === before && !(await goOn(open, crew, books))) break;
    if (!books.mayReplan()) break;
  }
  return finish(input, crew, books);
}
