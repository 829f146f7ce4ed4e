import { generate } from "loopkeeper";
import type { Phase } from "loopkeeper";
import { because, before, orBack, type Crew } from "./crew";

const prompt = `Design what is asked for: the parts that change, what each does, what they say to each other, and what is left out. Name the files.

{{item}}`;
const criteria = ["Each goal is achieved by a part of the design", "It fits the architecture that is given", "It names the files that change"];

/** Makes the design. One that a judge never accepts goes back to the questions. */
export const design = ({ model, judge, options }: Crew): Phase => ({
  name: "design",
  needs: ["clarify", "architecture"],
  run: ({ clarify, architecture }, at) =>
    generate({
      model, options, prompt, item: clarify, context: [architecture, ...before(at)], evaluate: { criteria, model: judge }, ...because(at), label: "design",
    }).catch(orBack("clarify")),
});
