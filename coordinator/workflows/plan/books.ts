// What a run knows and has used up: bounds are counted here, and facts never mix with leads.
import type { Body, Ref } from "loopkeeper";
import type { Ended } from "./graph";
import { clipped, type Part } from "./parts";
import type { Done } from "./step";

/** How often something may be tried again, by part or step and over the whole run (docs/workflows.md). */
export const bounds = { redo: { step: 2, run: 6 }, replan: { part: 2, run: 3 }, questions: 2 };

/** A body by the name that steps read it by. Only a file can be an image: what steps write is text, whatever its name. */
export type Named = { name: string; body: Body; image?: boolean };

export class Books {
  readonly done: Done[] = [];
  readonly replaced: Ended<Done>[] = []; // steps that a new plan took the place of
  readonly facts: string[] = []; // found by code, or said by a person
  readonly leads: string[] = []; // said by models
  readonly doneParts = new Set<string>();
  ended: Ended<Done>[] = []; // of the last plan
  plans = 0;
  private answers = 0; // of people
  private redone = 0;
  private replans = 0;
  private readonly replanned = new Map<string, number>(); // by part
  private readonly outputs = new Map<string, Set<string>>(); // by worker and input

  /** `there` is what can be read, by name: what steps write is added. */
  constructor(readonly there: Map<string, readonly Named[]>, readonly parts: readonly Part[]) {}

  open(): Part[] {
    return this.parts.filter(({ id }) => !this.doneParts.has(id));
  }

  /** The parts that a plan may still be made for. */
  plannable(): Part[] {
    return this.open().filter(({ id }) => (this.replanned.get(id) ?? 0) <= bounds.replan.part);
  }

  /** What has to change between two plans, or there is no progress. */
  state(): string {
    return JSON.stringify([this.open().map(({ id }) => id), this.done.length, this.answers]);
  }

  /** Takes in what a person said. */
  told(fact: string): void {
    this.facts.push(fact);
    this.answers++;
  }

  mayRedo(tries: number): boolean {
    if (tries >= bounds.redo.step || this.redone >= bounds.redo.run) return false;
    this.redone++;
    return true;
  }

  /** Counts a new plan, when there may be one, for each part that has met a wall of its own. */
  mayReplan(): boolean {
    if (this.replans >= bounds.replan.run) return false;
    const waits = (id: string) => this.ended.some(({ step, error }) => error?.kind === "skipped" && step.parts.includes(id));
    const failed = (id: string) => this.ended.some(({ step, error }) => error && error.kind !== "skipped" && step.parts.includes(id));
    for (const { id } of this.open()) if (failed(id) || !waits(id)) this.replanned.set(id, (this.replanned.get(id) ?? 0) + 1);
    this.replans++;
    return this.plannable().length > 0;
  }

  /** Says whether the same worker has made the same of the same input before. */
  again(input: string, values: readonly Named[]): boolean {
    const seen = this.outputs.get(input) ?? new Set();
    const output = JSON.stringify(values.map(({ body }) => (body as Partial<Ref> | null)?.ref ?? body));
    this.outputs.set(input, seen);
    return seen.has(output) || !seen.add(output);
  }

  /** Takes in how the steps of a plan ended. What was done is kept. */
  close(ended: Ended<Done>[]): void {
    this.replaced.push(...this.ended.filter(({ error }) => error));
    this.ended = ended;
    for (const { step, value, error } of ended) {
      const what = `${step.id} (${clipped(step.instruction, 160)})`;
      if (value) {
        this.done.push(value);
        this.facts.push(`step ${what} is done${step.writes.length > 0 ? `; it wrote ${step.writes.join(", ")}` : ""}`);
      } else if (error.kind !== "skipped") {
        const cannot = error.kind === "cannot"; // which is its worker's word
        this.facts.push(`step ${what} is not done: ${cannot ? "its worker said that it cannot be" : `${error.kind ?? "threw"}: ${clipped(error.message, 300)}`}`);
        const said = cannot ? [error.message] : error.opinions ?? [];
        this.leads.push(...said.slice(0, 3).map((opinion: string) => `of step ${step.id}: ${clipped(opinion, 300)}`));
      }
    }
    for (const { id } of this.open()) {
      const serving = ended.filter(({ step }) => step.parts.includes(id));
      if (serving.length > 0 && serving.every(({ value }) => value)) this.doneParts.add(id);
    }
  }
}
