// What a program offers its host: its interface, and a way to run it.
import { answer } from "./checks";
import { canonical } from "./border";
import { begin } from "./host";
import { console, output } from "./notes";

Object.defineProperty(globalThis, "console", { value: console });

interface Workflow {
  default?: (input: unknown) => unknown;
  params?: unknown;
  description?: unknown;
}

export function start(workflow: Workflow, file: string, comment: string) {
  const { params, description = comment } = workflow;

  function main(): (input: unknown) => unknown {
    if (typeof workflow.default === "function") return workflow.default;
    throw new Error(`${file} has no default function; a workflow is \`export default async function name(input) { … }\``);
  }

  function describe(): string {
    main();
    return canonical({ description: String(description), params }, file);
  }

  async function run(input: unknown): Promise<string> {
    begin();
    const value = await main()(input);
    if (value !== undefined) output("result", value);
    return value === undefined ? "null" : canonical(value, "the result");
  }

  return { version: 3, describe, run, check: answer };
}
