// Checked by tsc only: the types follow the schemas, and mistakes are seen.
import { all, batch, each, generate, t } from "loopkeeper";

const Point = t.object({ x: t.number(), label: t.optional(t.string()), side: t.enum(["left", "right"]), more: t.array(t.file()) });
type Point = t.Of<typeof Point>;

export const good: Point = { x: 1, side: "left", more: [{ ref: "ab", name: "a.md", bytes: 1 }] };
// @ts-expect-error side has two values
export const wrongSide: Point = { x: 1, side: "up", more: [] };
// @ts-expect-error x is required
export const missing: Point = { side: "left", more: [] };
// @ts-expect-error the object has no y
export const extra: Point = { x: 1, y: 2, side: "left", more: [] };

export async function inferred() {
  const point: Point = await generate({ model: "m", prompt: "p", schema: Point });
  const text: string = (await generate({ model: "m", prompt: "p" })).ref;
  // @ts-expect-error without a schema a text comes by reference
  const body: string = await generate({ model: "m", prompt: "p" });
  const labels: (string | undefined)[] = (await batch({ model: "m", prompt: "p", items: ["a"], schema: Point })).values.map((p) => p.label);
  const lengths: readonly number[] = (await each(["a"], async (item) => item.length)).values;
  const { a, b } = await all({ a: async () => 1, b: Promise.resolve("x") });
  // @ts-expect-error prompt is required
  await generate({ model: "m" });
  return [point, text, body, labels, lengths, a + 1, b.length] as const;
}
