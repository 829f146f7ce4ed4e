import { evaluate, gate } from "loopkeeper";
import type { Evaluation, Phase } from "loopkeeper";
import type { Crew } from "./crew";

/** Holds the result against the clarified goals; then a person accepts it, or says why not. */
export const acceptance = ({ model, judge, people }: Crew): Phase => ({
  name: "acceptance",
  needs: ["clarify", "implement", "end_to_end"],
  run: ({ clarify, implement, end_to_end }) =>
    evaluate({
      model: judge, author: model, goal: clarify.request, criteria: clarify.goals, subject: implement.files, sources: [clarify.answers, end_to_end], label: "acceptance" }),
  gate(judged: Evaluation, { end_to_end }) {
    if (judged.verdict !== "passed" || !people) return gate.of(judged, { back_to: "implement" });
    return gate.needs_human(`Every goal is achieved, says the judge; the end-to-end test: ${end_to_end.seen}`, { back_to: "clarify" });
  },
});
