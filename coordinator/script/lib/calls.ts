// The primitives that are one request each.
import type * as api from "loopkeeper";
import { call } from "./host";
import { collected } from "./collected";

const list = (criteria: string | readonly string[]) => (typeof criteria === "string" ? [criteria] : criteria);

function judged<R extends { evaluate?: api.Judge }>(request: R): object {
  if (!request.evaluate) return request;
  return { ...request, evaluate: { ...request.evaluate, criteria: list(request.evaluate.criteria) } };
}

export async function generate(request: api.GenerateRequest & { schema?: api.Schema<any> }): Promise<any> {
  const value = await call<api.Text>("generate", judged(request));
  // A text is passed on as a reference and nothing else, so its facts are there to read but are not part of its JSON.
  if (!request.schema && value.facts) Object.defineProperty(value, "facts", { enumerable: false });
  return value;
}

export async function batch(request: api.BatchRequest & { schema?: api.Schema<any> }): Promise<api.Collected<any>> {
  return collected(await call("batch", judged(request)));
}

export function plan(request: api.PlanRequest): Promise<api.Plan> {
  return call("plan", request);
}

export function evaluate(request: api.EvaluateRequest): Promise<api.Evaluation> {
  return call("evaluate", { ...request, criteria: list(request.criteria) });
}

export async function embed(request: { model: string; inputs: readonly api.Body[] }): Promise<number[][]> {
  return (await call<{ vectors: number[][] }>("embed", request)).vectors;
}

export function read(ref: api.Ref | string): Promise<string> {
  return call("read", { ref: typeof ref === "string" ? ref : ref.ref });
}
