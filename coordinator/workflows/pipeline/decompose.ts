import { gate, plan } from "loopkeeper";
import type { Phase, Plan } from "loopkeeper";
import { because, before, orBack, type Crew } from "./crew";

const goal = "Write every file of the design that is given. Each step writes some of the files, names them in what it writes, and reads those of other steps that it needs.";
const workers = [{ name: "develop", about: "writes whole files of a program" }];

/** Splits the design into tasks that depend on each other, each with files of its own. What a planner has to know is a gap in the design. */
export const decompose = ({ model }: Crew): Phase => ({
  name: "decompose",
  needs: ["clarify", "design"],
  run: ({ clarify, design }, at) =>
    plan({ model, goal, workers, context: [clarify, design, ...before(at)], check: faults, ...because(at), label: "decompose" }).catch(orBack("design")),
  gate: ({ outcome, note, questions }: Plan) => (outcome === "plan" ? gate.passed() : gate.sent_back("design", [note, ...questions].join(" "))),
});

/** A task that writes nothing cannot be seen to be done. That each file has one writer, and lies within the project, is a rule of every plan. */
const faults = ({ steps }: Plan) => steps.filter(({ writes }) => writes.length === 0).map(({ id }) => `step ${id} writes no file`);
