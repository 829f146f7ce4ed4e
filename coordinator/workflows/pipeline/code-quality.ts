import { batch, gate, t } from "loopkeeper";
import type { Collected, Phase } from "loopkeeper";
import type { Crew } from "./crew";
import type { File } from "./implement";

const prompt = "Name every place of this file that breaks one of the conventions, with the exact words. None is a good answer.\n\n{{item}}";
const Faults = t.array(t.object({ quote: t.string({ description: "Copied from the file" }), problem: t.string() }));

/** Holds each file against the conventions. Code looks up every quote, so that what was made up counts for nothing. */
export const codeQuality = ({ judge, options }: Crew): Phase => ({
  name: "code_quality",
  needs: ["implement", "conventions"],
  run: ({ implement, conventions }) =>
    batch({
      model: judge, options, prompt, items: implement.files as File[], keys: implement.files.map(({ path }: File) => path), context: [conventions], schema: Faults,
      check: (faults, { text }) => faults.filter(({ quote }) => !text.includes(quote)).map(({ quote }) => `this is not in the file: ${quote}`), label: "code quality",
    }),
  gate(judged: Collected<t.Of<typeof Faults>>) {
    const faults = judged.items.flatMap(({ key, value = [] }) => value.map(({ quote, problem }) => `${key}: ${problem} ("${quote}")`));
    if (faults.length > 0) return gate.sent_back("implement", faults.join("; "));
    if (judged.failed === 0) return gate.passed();
    return gate.needs_human(`nobody could judge ${judged.failures.map(({ key }) => key).join(", ")}`, { back_to: "implement" });
  },
});
