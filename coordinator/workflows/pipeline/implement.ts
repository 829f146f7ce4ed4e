import { gate, generate, t } from "loopkeeper";
import type { Phase, PlanStep } from "loopkeeper";
import { carryOut, failed } from "../plan/graph";
import { because, before, type Crew } from "./crew";

const prompt = `Write the files of this one step, whole and ready to use, so that its tests pass. Files of the steps it depends on are given. If the
design does not say what you need to know, name that as the gap and write no files.

{{item}}`;
const Written = t.object({ files: t.array(t.object({ path: t.string(), text: t.string() })), gap: t.optional(t.string()) });

export type File = t.Of<typeof Written>["files"][number];

/** Writes the files of each step, as parallel as the steps allow. A gap in the design goes back to it. */
export const implement = ({ model, options }: Crew): Phase => ({
  name: "implement",
  needs: ["design", "decompose", "test_plan", "conventions"],
  async run({ design, decompose, test_plan, conventions }, at) {
    const steps: PlanStep[] = decompose.order.map((id: string) => decompose.steps.find((step: PlanStep) => step.id === id));
    const ended = await carryOut<File[]>(steps, async (step, given) => {
      const cases = test_plan.cases.filter((one: { step: string }) => one.step === step.id);
      const { files, gap } = await generate({
        model, options, prompt, item: { step, cases }, context: [conventions, design, ...given.flat(), ...before(at)], schema: Written,
        check: ({ files, gap }) => (gap ? [] : misplaced(step, files.map(({ path }) => path))), ...because(at), label: `implement ${step.id}`,
      });
      if (gap) throw failed("gap", gap);
      return files;
    });
    const faults = ended.filter(({ error }) => error && error.kind !== "skipped");
    if (faults.length === 0) return { files: ended.flatMap(({ value = [] }) => value) };
    const target = faults.some(({ error }) => error.kind === "gap") ? "design" : "decompose";
    return gate.sent_back(target, faults.map(({ step, error }) => `${step.id}: ${error.message}`).join("; "));
  },
});

function misplaced({ writes }: PlanStep, paths: string[]): string[] {
  return [
    ...writes.filter((name) => !paths.includes(name)).map((name) => `the file ${name} is missing`),
    ...paths.filter((path) => !writes.includes(path)).map((path) => `${path} is no file of this step`),
  ];
}
