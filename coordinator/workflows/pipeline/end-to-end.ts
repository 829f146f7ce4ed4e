import { evaluate, gate, question, t } from "loopkeeper";
import type { Phase } from "loopkeeper";
import type { Crew } from "./crew";

const Seen = t.object({ passed: t.boolean(), seen: t.string({ description: "What was seen" }) });

/** A person runs the cases and says what was seen. Without people a judge reads the files, and the result says that nothing was run. */
export const endToEnd = ({ model, judge, people }: Crew): Phase => ({
  name: "end_to_end",
  needs: ["implement", "test_plan", "testing"],
  async run({ implement, test_plan, testing }) {
    if (people) {
      const text = "Run these cases with these files. Did all pass, and what did you see?";
      const { answer, by } = await question({ text, show: [testing, test_plan.cases, ...implement.files], schema: Seen, label: "end to end" });
      return { ...answer, by };
    }
    const { verdict, reasons } = await evaluate({
      model: judge, author: model, subject: implement.files, sources: [testing, test_plan.cases], criteria: "Each case would pass with these files", label: "end to end" });
    return { passed: verdict === "passed", seen: `nothing was run, the files were read: ${reasons.join("; ") || verdict}`, by: judge };
  },
  gate: ({ passed, seen }) => (passed ? gate.passed() : gate.sent_back("implement", seen)),
});
