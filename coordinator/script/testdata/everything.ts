/** Uses every primitive, and makes texts of the objects that it is given. */
import {
  all, approve, batch, check, collect, cover, each, embed, evaluate, expect, fallback, gate, generate, lines, log, now, output, pages, pipeline, plan,
  question, read, sleep, spawn, StepError, t, tool, until, uuid, waive,
} from "loopkeeper";

export const params = t.object({
  files: t.files(), data: t.file(), settings: t.record(t.any()), night: t.optional(t.string()),
});

const Finding = t.object({ line: t.integer(), quote: t.string() });

export default async function everything(input: t.Of<typeof params>) {
  const settings = JSON.stringify(input.settings); // the order of its keys is part of every request below
  console.log("begins", now(), uuid(), Math.random(), input);
  expect(input.files.map((file) => file.name));
  await sleep({ seconds: 600, label: settings });

  const found = await batch({
    model: "small", prompt: "{{item}}", items: input.files, context: [settings], schema: t.array(Finding), reuse: true,
    check: async (findings, file) => (findings.length % 2 === 0 ? (await read(file)).length > 3 || "too short" : true),
    evaluate: { criteria: "good", model: "judge" },
  });
  for (const failure of found.failures.slice(0, 1)) waive(failure, JSON.stringify(failure));
  await each(found.failures.slice(1), (failure) => fallback(failure, () => generate({ model: "large", prompt: JSON.stringify(failure) })));
  cover(["more.md"], found.items[0]);
  output("findings", found);

  const many = await batch({ model: "small", prompt: settings + "{{item}}", items: lines(input.data), check: (text) => text.bytes > 0 || "empty" });
  let failed = 0;
  for await (const page of pages(many, { count: 2 })) failed += page.filter((item) => item.failure).length;
  for await (const page of pages<object>((token) => tool("list", { token, settings }), { most: 2 })) log.debug(JSON.stringify(page));

  const letters = await each(Array.from({ length: 3 }, (_, i) => i), async (i) => {
    const { outcome, comment } = await approve({ title: `Letter ${i}`, timeout_seconds: 3600, on_timeout: "rejected" });
    if (outcome === "rejected") throw new Error(comment || "nobody said yes");
    await sleep(600 + i);
    const child = await spawn({ workflow: "letters", input: { i, settings } });
    if (child.state !== "completed") waive(child, "it is only a draft");
    return JSON.stringify(child);
  }, { concurrency: 2, label: "letters" });

  const state = await until({
    label: "green", state: failed, rounds: 3, reached: (n) => n === 0,
    round: (n, round) => check((feedback) => generate({ model: "m", prompt: `${n} ${round} ${uuid()}`, feedback, schema: t.integer() }), (n) => n < 9 || "too many", { attempts: 20 }),
  });
  const made = await pipeline({
    name: "dev", inputs: { settings, letters: letters.values }, max_rollbacks: 5,
    phases: [
      { name: "clarify", needs: ["settings"], run: async ({ settings }, at) => (await question({ text: settings + JSON.stringify(at.reasons) })).answer },
      { name: "design", needs: ["clarify"], run: ({ clarify }, at) => plan({ model: "planner", goal: JSON.stringify([clarify, at]), check: (p) => p.steps.length > 0 }),
        gate: async (value) => gate.of(await evaluate({ model: "judge", criteria: "sound", subject: value }), { back_to: "clarify" }) },
      { name: "build", needs: ["design"], run: ({ design }, at) => all({
        code: () => generate({ model: "m", prompt: JSON.stringify(design), item: at.round }), test: async () => tool("test", { design }) }),
        gate: (_, __, at) => (at.round < 2 ? gate.sent_back("design", "round " + at.round) : gate.passed()) },
    ],
  });

  const vectors = await embed({ model: "e", inputs: [settings] });
  const text = await generate({ model: "m", prompt: "last", item: { state, vectors } }).catch((error: StepError) => String(error));
  await spawn({ workflow: "news", input: {}, detached: true });
  collect("gathered", [{ key: "x", message: String(Math.random()) }]);
  return { text, made, state, at: now(), id: uuid() };
}
