/** Number relay with the loop in code: a plan is carried out step by step, and code makes the report of what was recorded. */
import { generate, log, plan, t, tool } from "loopkeeper";

const step = t.object({ id: t.string(), instruction: t.string(), worker: t.string(), reads: t.array(t.string()), writes: t.array(t.string()),
  depends_on: t.array(t.string()) });
type Step = t.Of<typeof step>;

export const params = t.object({
  world: t.string(), goal: t.string(), model: t.string(), workers: t.array(t.string()), accounts: t.array(t.string()),
  named: t.string(), gold: t.optional(t.array(step)), options: t.record(t.any()) });

/** What came of a step: a number, or a reply without one. */
type Answer = { step: Step; worker: string; argument: string; reply: string; number?: string };

const mostSteps = 40, mostWorkers = 40, mostPlans = 3, attempts = 5, busy = 3;

const conventions = `How plans are written here:
- A step asks one worker once. Its instruction says with which argument: a word in quotes, or the names of the numbers that it is made of.
- Each step writes one name, which stands for the number that the worker says, such as n1. A step whose number sets an account writes the account, a dot and the number of the step, such as plums.4.
- A worker that is busy is asked again by the program. The program makes the report, too: there is no step for it.`;

const fillIn = `One step of a plan is done now. Give the argument that its worker is asked with, as the instruction says: the word in quotes, or the values of the names, without spaces.

{{item}}`;

export default async function relay({ world, goal, model, workers, accounts, named, gold, options }: t.Of<typeof params>) {
  const answers: Answer[] = [];
  const order: Step[] = [];
  let steps = gold ?? await planned(goal);
  for (let made = 1; ; made++) {
    order.push(...steps);
    await carryOut(steps);
    const open = walls();
    if (open.length === 0 || made === mostPlans) break;
    log(`plan ${made + 1} for ${open.length} that do not answer`);
    const next = await planned(open.map(({ worker, argument }) =>
      `Get the number that ${worker} was asked for from whoever answers in its place, with the same argument "${argument}".`).join(" "));
    steps = next.map((one) => ({ ...one, id: `${made + 1}.${one.id}`, depends_on: one.depends_on.map((id) => `${made + 1}.${id}`) }));
  }
  return { report: report(), answers: answers.map(({ worker, argument, number }) => ({ worker, argument, number })) };

  /** A plan for a goal, with what is known so far as facts; no steps where there is none. */
  async function planned(goal: string): Promise<Step[]> {
    const facts = answers.map(({ worker, argument, reply, number }) => `${worker}, asked with "${argument}", said: ${number ?? reply}`);
    const text = [goal, ...facts].join(" ");
    const first = workers.filter((one) => names(text, one));
    const offered = [...first, ...workers.filter((one) => !first.includes(one))].slice(0, mostWorkers - 1);
    try {
      const made: any = await plan({
        model, goal, context: [conventions], max_steps: Math.min(mostSteps, names(text).length + 2), retry: { attempts },
        ...(facts.length > 0 && { facts }), label: "plan",
        workers: [...offered.map((name) => ({ name, about: `says a number when it is asked, or who answers in its place` })),
          { name: named, about: "whoever the instruction names, where a condition decides it or the worker is not in this list" }],
      } as any);
      return made.order.map((id: string) => made.steps.find((one: Step) => one.id === id));
    } catch (error: any) {
      log.warn(`no plan: ${error.message}`);
      return [];
    }
  }

  /** The names of workers in a text, or whether one is there. */
  function names(text: string): string[];
  function names(text: string, name: string): boolean;
  function names(text: string, name?: string) {
    const said = new Set(text.match(/[a-z]+\d+/g));
    return name === undefined ? workers.filter((one) => said.has(one)) : said.has(name);
  }

  /** Does each step once all that it depends on is done; what rests on a step without a number is left out. */
  async function carryOut(steps: readonly Step[]) {
    const under = new Map<string, Promise<Answer | undefined>>();
    const one = async (step: Step): Promise<Answer | undefined> => {
      const before = await Promise.all(step.depends_on.map((id) => under.get(id)));
      if (before.some((answer) => answer?.number === undefined && step.reads.some((name) => answer?.step.writes.includes(name) ?? true))) return undefined;
      return ask(step, before.filter((answer) => answer !== undefined)).catch((error) => {
        log.warn(`${step.id}: ${error.message}`);
        return undefined;
      });
    };
    for (const step of steps) under.set(step.id, one(step));
    await Promise.all(under.values());
  }

  /** The model fills in what the step's worker is asked with, code asks, and reads the number. */
  async function ask(step: Step, before: readonly Answer[]): Promise<Answer> {
    const values = new Map<string, string>();
    for (const answer of [...answers, ...before]) {
      for (const name of answer.step.writes) {
        if (answer.number && (step.reads.includes(name) || before.includes(answer))) values.set(name, answer.number);
      }
    }
    const item = [`Instruction: ${step.instruction}`, ...[...values].map(([name, value]) => `${name} = ${value}`)].join("\n");
    const argument = t.string({ pattern: "^[a-zA-Z0-9+]{1,60}$" });
    const choice = step.worker === named ? names(step.instruction) : [];
    if (step.worker === named && choice.length === 0) throw new Error("the instruction names no worker");
    const schema: any = choice.length > 0 ? t.object({ worker: t.enum(choice), z_argument: argument }) : t.object({ z_argument: argument });
    const filled: any = await generate({ model, prompt: fillIn, item, schema, options, retry: { attempts }, label: step.id,
      check: ({ z_argument }: any) => restsOn(z_argument, [...values.values()], step.instruction) });
    return call(step, filled.worker ?? step.worker, filled.z_argument);
  }

  async function call(step: Step, worker: string, argument: string): Promise<Answer> {
    for (let again = 0; ; again++) {
      const { reply }: { reply: string } = await tool("relay.ask", { world, worker, argument }, { label: `ask ${worker}` });
      if (again < busy && /^I am busy\./.test(reply)) continue;
      const number = /^My number is (\d{6})\./.exec(reply)?.[1];
      const answer = { step, worker, argument, reply: clean(reply), number };
      answers.push(answer);
      return answer;
    }
  }

  /** Those who named somebody else, who has said no number yet. */
  function walls(): Answer[] {
    return answers.filter(({ reply, number }) => {
      const other = /^I do not answer\. ([a-z]+\d+) answers/.exec(reply)?.[1];
      return number === undefined && other !== undefined && !answers.some((answer) => answer.worker === other && answer.number);
    });
  }

  /** By worker, or by account the number that was booked last by the order of the plan. */
  function report(): { [name: string]: number } {
    const out: { [name: string]: number } = {};
    const told = answers.filter(({ number }) => number);
    told.sort((a, b) => order.indexOf(a.step) - order.indexOf(b.step));
    for (const { step, worker, number } of told) {
      const account = step.writes.map((name) => name.split(/[^a-z]/)[0]).find((name) => accounts.includes(name));
      if (accounts.length === 0) out[worker] = Number(number);
      else if (account !== undefined) out[account] = Number(number);
    }
    return out;
  }
}

/** Whether an argument is made of what the step reads, or is a word of its instruction. */
function restsOn(argument: string, values: readonly string[], instruction: string): true | string {
  const numbers: string[] = argument.match(/\d+/g) ?? [];
  const strange = numbers.find((number) => !values.includes(number) && !instruction.includes(number));
  if (strange !== undefined) return `${strange} is none of the numbers that the step reads`;
  if (values.length > 0 && numbers.length === 0) return `the argument has to be made of ${values.join(", ")}`;
  return values.length > 0 || instruction.includes(argument) || `the instruction does not say ${argument}`;
}

/** One line of a reply, without what could pass for a turn of a talk. */
const clean = (reply: string) => reply.split("\n")[0].replace(/<\|?|\|?>/g, " ").slice(0, 160);
