import { plan } from "loopkeeper";
import type { Phase, Plan } from "loopkeeper";
import { because, before, orBack, type Crew } from "./crew";

/** Splits the design into tasks that depend on each other, each with files of its own. */
export const decompose = ({ model }: Crew): Phase => ({
  name: "decompose",
  needs: ["clarify", "design"],
  run: ({ clarify, design }, at) =>
    plan({
      model, goal: "Write every file of the design that is given. Each step writes some of the files, and names them in writes.",
      context: [clarify, design, ...before(at)], check: faults, ...because(at), label: "decompose",
    }).catch(orBack("design")),
});

/** A task that writes nothing cannot be seen to be done, and a file of two writers has none. */
function faults({ steps }: Plan): string[] {
  const owner = new Map<string, string>();
  return steps.flatMap(({ id, writes }) => [
    ...(writes.length === 0 ? [`step ${id} writes no file`] : []),
    ...writes.flatMap((name) => {
      const other = owner.get(name);
      owner.set(name, id);
      if (/^\/|(^|\/)\.\.?(\/|$)/.test(name)) return [`${name} does not lie within the project`];
      return other === undefined ? [] : [`steps ${other} and ${id} both write ${name}`];
    }),
  ]);
}
