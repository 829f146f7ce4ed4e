import { generate, t } from "loopkeeper";
import type { Phase, Plan } from "loopkeeper";
import { because, before, orBack, type Crew } from "./crew";

const prompt = `Plan the tests of these steps, before anything is written: for each step at least one case, with what is given and what must be seen.
Leave out what cannot fail.

{{item}}`;
const Cases = t.object({ cases: t.array(t.object({ step: t.string(), name: t.string(), given: t.string(), seen: t.string() }), { minItems: 1 }) });

/** Plans the tests. Code sees to it that no step is without one. */
export const testPlan = ({ model, options }: Crew): Phase => ({
  name: "test_plan",
  needs: ["clarify", "decompose", "testing"],
  run: ({ clarify, decompose, testing }, at) =>
    generate({
      model, options, prompt, item: decompose.steps, context: [testing, clarify, ...before(at)], schema: Cases, ...because(at), label: "test plan",
      check: ({ cases }) => untested(decompose, cases.map(({ step }) => step)),
    }).catch(orBack("decompose")),
});

function untested({ steps }: Plan, tested: string[]): string[] {
  return [
    ...steps.filter(({ id }) => !tested.includes(id)).map(({ id }) => `step ${id} has no case`),
    ...tested.filter((step) => !steps.some(({ id }) => id === step)).map((step) => `there is no step ${step}`),
  ];
}
