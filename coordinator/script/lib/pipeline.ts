// The phases of a pipeline. Which one is in progress, and how often there was a way back, is kept by the host: this
// module does what the answers to its `phase` requests say.
import type * as api from "loopkeeper";
import { call, here, onRollback } from "./host";
import { question } from "./waits";

class Gated implements api.Gate {
  constructor(readonly outcome: api.Gate["outcome"], readonly reason?: string, readonly target?: string) {}
}

export const gate = {
  passed: () => new Gated("passed"),
  sent_back: (target: string, reason: string) => new Gated("sent_back", reason, target),
  needs_human: (reason: string, options: { back_to?: string } = {}) => new Gated("needs_human", reason, options.back_to),
  of: ({ verdict, reasons }: api.Evaluation, options: { back_to?: string } = {}) => new Gated(verdict, reasons.join("; "), options.back_to),
};

interface Move {
  phase: string | null;
  round: number;
  reasons: api.PhaseReason[];
}

interface Done {
  phase: string;
  outcome: api.Gate["outcome"];
  target?: string;
  reason?: string;
}

const sentence = (text: string) => (/[.?!]$/.test(text) ? text : `${text}.`);
const back = "back to "; // how a person is offered an earlier phase

let active = false;

export async function pipeline(request: api.PipelineRequest): Promise<Record<string, any>> {
  if (active) throw new Error("a run has one pipeline in progress at a time; spawn a run for another");
  active = true;
  try {
    return await new Pipeline(request).run();
  } finally {
    active = false;
    onRollback(() => false);
  }
}

class Pipeline {
  private readonly order: readonly string[];
  private readonly results = new Map<string, unknown>(); // of phases that have passed and were not reopened
  private readonly last = new Map<string, unknown>(); // what each phase made when it last ran

  constructor(private readonly request: api.PipelineRequest) {
    this.order = request.phases.map((phase) => phase.name);
    const known = new Set(Object.keys(request.inputs ?? {}));
    for (const { name, needs = [] } of request.phases) {
      const missing = needs.filter((need) => !known.has(need));
      if (missing.length > 0) throw new TypeError(`phase ${name} needs ${missing.join(", ")}, which is no input and no earlier phase`);
      if (known.has(name)) throw new TypeError(`two phases or inputs have the name ${name}`);
      known.add(name);
    }
  }

  async run(): Promise<Record<string, any>> {
    const { max_rollbacks } = this.request;
    let move = await this.ask({ phases: this.order, max_rollbacks });
    while (move.phase !== null) {
      const done = await this.untilRollback(this.carryOut(move as Move & { phase: string }));
      move = await this.ask({ done });
    }
    return Object.fromEntries(this.order.map((name) => [name, this.results.get(name)]));
  }

  private async ask(body: { phases?: readonly string[]; max_rollbacks?: number; done?: Done }): Promise<Move> {
    const move = await call<Move>("phase", { ...body, pipeline: this.request.name });
    if (move.phase === null) return move;
    for (const reopened of this.order.slice(this.order.indexOf(move.phase))) this.results.delete(reopened);
    return move;
  }

  /**
   * Waits for a phase's work, or for the first of its steps that fails because a person went back. Then what waits for the
   * phase's steps waits for ever, so that nothing of it goes on beside the phase that is in progress now.
   */
  private untilRollback(work: () => Promise<Done | undefined>): Promise<Done | undefined> {
    const first = here();
    return new Promise((resolve, reject) => {
      onRollback((position) => {
        if (position >= first) resolve(undefined);
        return true;
      });
      work().then(resolve, reject);
    });
  }

  private carryOut(move: Move & { phase: string }): () => Promise<Done | undefined> {
    const phase = this.request.phases[this.order.indexOf(move.phase)];
    return async () => {
      const at: api.PhaseContext = { name: phase.name, round: move.round, reasons: move.reasons, previous: this.last.get(phase.name) };
      const inputs = this.inputsOf(phase);
      const value = await phase.run(inputs, at);
      const gated = value instanceof Gated ? value : await this.gated(phase, value, inputs, at);
      if (!(value instanceof Gated)) this.last.set(phase.name, value);
      const done = await this.decided(phase.name, gated);
      if (done?.outcome === "passed") this.results.set(phase.name, value);
      return done;
    };
  }

  private inputsOf({ needs = [] }: api.Phase): Record<string, unknown> {
    const given = (name: string) => (this.results.has(name) ? this.results.get(name) : this.request.inputs?.[name]);
    return Object.fromEntries(needs.map((name) => [name, given(name)]));
  }

  private async gated(phase: api.Phase, value: unknown, inputs: Record<string, unknown>, at: api.PhaseContext): Promise<Gated> {
    const gated = phase.gate ? await phase.gate(value, inputs, at) : new Gated("passed");
    if (gated instanceof Gated) return gated;
    throw new TypeError(`the gate of phase ${phase.name} must return gate.passed(), gate.sent_back(…), gate.needs_human(…) or gate.of(evaluation)`);
  }

  /**
   * Turns what a gate said into the phase's end, with a person's decision where the gate wants one; undefined when another
   * phase is in progress by then.
   */
  private async decided(phase: string, { outcome, reason, target }: Gated): Promise<Done | undefined> {
    if (outcome === "passed") return { phase, outcome };
    if (outcome === "sent_back") return { phase, outcome, target: target ?? this.back(phase), reason };
    const move = await this.ask({ done: { phase, outcome, reason } });
    if (move.phase !== phase) return undefined;
    const earlier = target ? [target] : this.order.slice(0, this.order.indexOf(phase));
    const { answer, comment } = await question({
      label: `${this.request.name}: ${phase}`,
      text: `${this.request.name}, phase ${phase}: ${sentence(reason || "nothing decides it")} Does it pass, go back (a comment says why), or stop here?`,
      choices: ["pass", ...earlier.map((name) => back + name), "stop"],
    });
    if (answer === "pass") return { phase, outcome: "passed" };
    const why = comment || reason || "a person said so";
    if (answer !== "stop") return { phase, outcome: "sent_back", target: answer.slice(back.length), reason: why };
    throw Object.assign(new Error(`phase ${phase} was stopped: ${why}`), { kind: "rejected" });
  }

  private back(phase: string): never {
    throw new TypeError(`phase ${phase} was sent back, and its gate names no target: gate.of(evaluation, { back_to: "…" })`);
  }
}
