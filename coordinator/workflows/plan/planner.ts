// Has a plan made for the parts that are open, and asks a person what the planner has to know.
import { plan, question } from "loopkeeper";
import type { Plan, PlanStep } from "loopkeeper";
import { bounds, type Books } from "./books";
import { failed } from "./graph";
import { shown, type Crew } from "./workers";

/** Returns the steps in their order, with ids and parts as the run counts them. Throws when there is no plan. */
export async function nextPlan(crew: Crew, books: Books, round: number): Promise<PlanStep[]> {
  for (let asked = 0; ; asked++) {
    const made = await askPlanner(crew, books, round);
    if (made.outcome === "plan") return renamed(made, books, round);
    if (made.outcome === "impossible") throw failed("impossible", `it cannot be done, says the planner: ${made.note}`);
    if (!crew.people || asked === bounds.questions) throw failed("needs_human", `the planner has to know: ${made.questions.join(" ")}`);
    for (const text of made.questions) {
      const { answer } = await question({ text, label: "plan" });
      books.told(`A person was asked "${text}" and answered: ${answer}`);
    }
  }
}

function askPlanner(crew: Crew, books: Books, round: number): Promise<Plan> {
  const open = books.plannable();
  const label = books.plans++ === 0 ? "plan" : `plan ${books.plans}`;
  const { planner: model, max_steps, workers, lists } = crew;
  return plan({
    model, label, max_steps, lists: orNone(lists.map(({ name, count }) => ({ name, count }))),
    goal: round === 0 ? crew.goal : open.map(({ text }) => text).join("\n"),
    parts: open.length > 1 ? open.map(({ text }) => text) : undefined,
    workers: Object.entries(workers).map(([name, { about, irreversible }]) => ({ name, about: irreversible ? `${about} (the program asks a person before)` : about })),
    inputs: orNone([...books.there.keys()]),
    context: orNone([...(shown(crew.context).context ?? []), ...(round === 0 ? [] : [`The whole goal, of which only the open parts are planned now: ${crew.goal}`])]),
    facts: orNone(books.facts.slice()), leads: orNone(books.leads.slice()),
    check: ({ steps }) => steps.filter(({ each, worker }) => each !== "" && (!workers[worker].writes || workers[worker].irreversible))
      .map(({ id, worker }) => `step ${id} goes over a list, and ${worker} does one thing at a time`),
  });
}

const orNone = <T>(list: readonly T[]) => (list.length > 0 ? list : undefined);

/** Ids of earlier plans may come again, and a new plan counts the open parts from g1. */
function renamed({ steps, order }: Plan, books: Books, round: number): PlanStep[] {
  const open = books.plannable();
  const id = (of: string) => (round === 0 ? of : `${round + 1}.${of}`);
  const part = (of: string) => open[Number(of.slice(1)) - 1]?.id ?? of;
  return order.map((of) => steps.find((step) => step.id === of)!).map((step) => ({
    ...step, id: id(step.id), parts: step.parts.map(part), after: step.after.map(id), depends_on: step.depends_on.map(id) }));
}
