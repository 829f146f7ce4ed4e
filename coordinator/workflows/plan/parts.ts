// The parts of a goal: a model splits a large one, code numbers them.
import { generate, log, t, waive } from "loopkeeper";
import type { Input } from "../plan";

/** Ids count over the whole run; a key is what books and people see. */
export type Part = { id: string; text: string; key: string };

const instruction = "Split the goal into its independent parts. A part is something that can be done and checked by itself, in a sentence of its own. " +
  "Together the parts are the whole goal: leave nothing out, add nothing, and keep the numbers, names and quoted words as they are. " +
  "A goal that is one thing has one part.";
const mostParts = 8;
const Parts = t.object({ parts: t.array(t.string({ minLength: 3, maxLength: 300 }), { minItems: 1, maxItems: mostParts }) });

/** Returns the parts of the goal as g1 and on. */
export async function partsOf({ goal, parts, planner, options }: Input): Promise<Part[]> {
  const texts = parts ?? (isLarge(goal) ? await split(goal, planner, options) : [goal]);
  return texts.map((text, i) => ({ id: `g${i + 1}`, text, key: `g${i + 1}: ${clipped(text, 100)}` }));
}

/** A goal of several sentences, or one that lists parts. */
const isLarge = (goal: string) => sentences(goal) > 1;

const sentences = (goal: string) => unnumbered(goal).split(/[.!?]+\s+(?=[^a-z\s])|\n/).filter((sentence) => /\S/.test(sentence)).length;

const unnumbered = (goal: string) => goal.replace(/^\s*\d+[.)]\s/gm, "");

async function split(goal: string, model: string, options?: Input["options"]): Promise<string[]> {
  try {
    const prompt = `${instruction}\n\n{{item}}`;
    let tries = 0;
    const check = ({ parts }: t.Of<typeof Parts>) => [...lost(goal, parts), ...(tries++ === 0 ? doubted(goal, parts) : [])];
    const { parts } = await generate({ model, options, prompt, item: goal, schema: Parts, check, label: "split" });
    return different(parts, goal);
  } catch (error: any) {
    if (typeof error.step !== "number") throw error;
    log.warn(`the goal is planned as one part: ${error.message}`);
    waive(error, "the goal is planned as one part");
    return [goal];
  }
}

/** Each part once, and not the whole goal beside its parts. */
function different(parts: readonly string[], goal: string): string[] {
  const each = [...new Map(parts.map((text) => [normalised(text), text.trim()])).values()];
  const others = each.filter((text) => normalised(text) !== normalised(goal));
  return others.length > 1 ? others : each;
}

/** A text as far as it says anything: without case, blanks and punctuation. */
export const normalised = (text: string) => text.toLowerCase().split(/[\s.,;:!?"'()-]+/).join(" ").trim();

/** What a goal names literally must not get lost: quoted words, names of files, and all that has a number; nor may what it lists. */
function lost(goal: string, parts: readonly string[]): string[] {
  const named = unnumbered(goal).match(/"[^"\n]+"|[\w./-]*\d[\w./%-]*|[\w/-]+\.[a-z]{1,4}\b/g) ?? [];
  const text = parts.join("\n");
  const unnamed = [...new Set(named.map((name) => name.replace(/[.,-]+$/, "")))].filter((name) => !text.includes(name)).map((name) => `no part names ${name}`);
  const count = counted(goal, parts), items = Math.min(listed(goal), mostParts);
  return count < items ? [...unnamed, `the goal lists ${items} things, but the number of parts is ${count}`] : unnamed;
}

/** A sentence may ask for nothing, so that fewer parts than sentences are no more than a doubt. A list says by itself what there is. */
function doubted(goal: string, parts: readonly string[]): string[] {
  const count = counted(goal, parts), of = sentences(goal);
  if (listed(goal) > 0 || count >= Math.min(of, mostParts)) return [];
  return [`the goal has ${of} sentences, but the number of parts is ${count}: everything that a sentence asks for has to be in a part`];
}

/** The whole goal as the only part has lost nothing. */
function counted(goal: string, parts: readonly string[]): number {
  const each = different(parts, goal);
  return each.length === 1 && normalised(each[0]) === normalised(goal) ? mostParts : each.length;
}

/** The items of a goal's list; what is under one of them belongs to it. */
function listed(goal: string): number {
  const depths = [...goal.matchAll(/^([ \t]*)(?:\d+[.)]|[-*•])[ \t]+\S/gm)].map(([, indent]) => indent.length);
  return depths.filter((depth) => depth === Math.min(...depths)).length;
}

/** A text as one line of at most so many characters. */
export function clipped(text: string, most: number): string {
  const line = [...text.replace(/\s+/g, " ").trim()];
  return line.length <= most ? line.join("") : `${line.slice(0, most - 1).join("")}…`;
}
