// Items as the groups of those that are the same, in chunks; and what an answer for a chunk says.
import { log, read } from "loopkeeper";
import type { Item, Json, Lines, Ref } from "loopkeeper";

/** Items with one body. */
export type Group = { keys: string[]; body: unknown };

/** What an answer says of the item with a number. */
export type Row = { n: number; answer: Json };

type Given = { items?: readonly unknown[]; files?: readonly Ref[]; lines?: Lines; keys?: readonly string[] };

const named = (value: unknown): value is Ref => typeof (value as Ref | null)?.ref === "string";

/** Opens what was given, and puts what is the same into one group. `order` has every key in input order, with its group. */
export async function grouped({ items, files, lines, keys }: Given): Promise<{ groups: Group[]; order: [string, Group][] }> {
  const list = lines ? await linesOf(lines.lines as Ref) : (items ?? files ?? []).map((body, i) => ({ body, key: named(body) ? body.name : `item ${i + 1}` }));
  if (keys && keys.length !== list.length) throw new Error(`there are ${keys.length} keys for ${list.length} items`);
  const groups = new Map<string, Group>();
  const order = new Map<string, Group>();
  for (const [i, { body, key: own }] of list.entries()) {
    const key = keys?.[i] ?? own;
    if (order.has(key)) throw new Error(`two items have the key ${key}; give each a name of its own with \`keys\``);
    const same = named(body) ? body.ref : JSON.stringify(body);
    const group = groups.get(same) ?? { keys: [], body };
    group.keys.push(key);
    groups.set(same, group);
    order.set(key, group);
  }
  for (const group of groups.values()) if (named(group.body)) group.body = await read(group.body);
  return { groups: [...groups.values()], order: [...order] };
}

async function linesOf(ref: Ref): Promise<{ body: unknown; key: string }[]> {
  const lines = (await read(ref)).replace(/\n$/, "").split("\n");
  return lines.map((line, i) => ({ body: JSON.parse(line), key: `${ref.name}:${i + 1}` }));
}

export function chunked<T>(list: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));
}

/** Returns what an answer says of a chunk. A number that there is not says nothing, and neither do two answers that differ. */
export function rowsOf(item: Item<Row[]>, part: readonly Group[]): Map<Group, Row> {
  const rows = new Map<Group, Row>();
  const unclear = new Set<Group>();
  for (const row of item.value ?? []) {
    const group = part[row.n - 1];
    const other = rows.get(group);
    if (!group) log(`${item.key}: there is no item ${row.n}`);
    else if (other && JSON.stringify(other.answer) !== JSON.stringify(row.answer)) unclear.add(group);
    else rows.set(group, row);
  }
  for (const group of unclear) {
    log(`${item.key}: two answers for ${group.keys[0]}`);
    rows.delete(group);
  }
  return rows;
}

/** Returns all answers, lists taken apart, each once, with the keys of the items that it was given for. */
export function distinct(groups: readonly Group[], answers: ReadonlyMap<Group, Row>, unique?: string): { value: Json; keys: string[] }[] {
  const found = new Map<string, { value: Json; keys: string[] }>();
  for (const group of groups.filter((one) => answers.has(one))) {
    const { answer } = answers.get(group)!;
    for (const value of Array.isArray(answer) ? answer : [answer]) {
      const by = sameness(unique === undefined ? value : (value as any)?.[unique] ?? value);
      const known = found.get(by);
      if (!known) found.set(by, { value, keys: [...group.keys] });
      else known.keys.push(...group.keys.filter((key) => !known.keys.includes(key)));
    }
  }
  return [...found.values()];
}

// Texts are the same whatever their case and spaces.
const sameness = (value: unknown) => (typeof value === "string" ? value.trim().toLowerCase().replace(/\s+/g, " ") : JSON.stringify(value));
