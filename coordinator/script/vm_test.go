package script

import (
	"testing"
)

func TestSmoke(t *testing.T) {
	r := started(t, NewHost(Limits{}), `
/** Says hello. */
import { generate, output, t, uuid, now } from "loopkeeper";
export const params = t.object({ name: t.string(), n: t.optional(t.integer()) });
export default async function main(input: t.Of<typeof params>) {
  console.log("hello", input, uuid(), now());
  const x = await generate({ model: "m", prompt: input.name, schema: t.object({ a: t.integer() }) });
  output("x", [x]);
  for await (const y of (async function*() { yield 1; yield 2 })()) console.log(y);
  try { await generate({ model: "m", prompt: "2" }); } catch (e) { console.log(e.kind, e); console.log(e.stack); throw e }
  return x;
}`, `{"name":"w"}`)
	t.Log(r.last)
	t.Log(lines(r.last.Requests))
	y := r.value(1, `{"a":12345678901234567890}`)
	t.Log(lines(y.Requests))
	y = r.fail(5, "empty_turn", "nothing")
	t.Log(lines(y.Requests))
	t.Logf("%+v", y.End.Failure)
}
