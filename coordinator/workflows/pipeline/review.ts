import { gate, generate, t } from "loopkeeper";
import type { Phase } from "loopkeeper";
import type { Crew } from "./crew";

const reviewed = ["clarify", "design", "decompose", "test_plan"] as const; // in the order in which they were made

const prompt = `Review the clarified goals, the design, its steps and the test plan against each other, before anything is written. Name each gap,
contradiction and broken convention once, with the phase that has to repair it. None is a good answer.`;
const Findings = t.object({ findings: t.array(t.object({ phase: t.enum(reviewed), problem: t.string() })) });

/** Looks at all that was made on paper. What it finds goes back to the earliest phase that left a gap. */
export const review = ({ judge, options }: Crew): Phase => ({
  name: "review",
  needs: [...reviewed, "conventions"],
  run: ({ conventions, clarify, design, decompose, test_plan }) =>
    generate({ model: judge, options, prompt, context: [conventions, clarify, design, decompose.steps, test_plan], schema: Findings, label: "review" }),
  gate({ findings }: t.Of<typeof Findings>) {
    const target = reviewed.find((name) => findings.some(({ phase }) => phase === name));
    if (target === undefined) return gate.passed();
    return gate.sent_back(target, findings.map(({ phase, problem }) => `${phase}: ${problem}`).join("; "));
  },
});
