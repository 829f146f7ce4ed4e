// What `import { … } from "loopkeeper"` gives. loopkeeper.d.ts has the types and the documentation.
export { StepError } from "./host";
export { generate, batch, plan, evaluate, embed, read } from "./calls";
export { each, all } from "./parallel";
export { output, collect, log } from "./notes";
export { now, uuid } from "./determined";
export { t } from "./schema";
