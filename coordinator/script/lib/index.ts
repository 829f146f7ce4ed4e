// What `import { … } from "loopkeeper"` gives. loopkeeper.d.ts has the types and the documentation.
export { StepError } from "./host";
export { generate, batch, plan, evaluate, embed, read } from "./calls";
export { sleep, approve, question, tool, spawn } from "./waits";
export { each, all } from "./parallel";
export { check } from "./checks";
export { until } from "./until";
export { pipeline, gate } from "./pipeline";
export { pages } from "./pages";
export { expect, cover, waive, fallback } from "./handled";
export { output, collect, log } from "./notes";
export { now, uuid } from "./determined";
export { t, lines } from "./schema";
