// The primitives that are one call of a model each, and `read`.
import type * as api from "loopkeeper";
import { asked, type Judging } from "./checks";
import { collected } from "./collected";
import { call, here } from "./host";
import { authorOf, written } from "./text";

const list = <C>(criteria: C | readonly C[]) => (Array.isArray(criteria) ? criteria : [criteria]);

/** Makes of what the script wrote what the host is sent: criteria as a list, and of a check only that there is one. */
function judged<R extends { evaluate?: api.Judge; check?: Judging }>(request: R): object {
  const { evaluate, check } = request;
  if (evaluate === undefined && check === undefined) return request;
  return { ...request, evaluate: evaluate && { ...evaluate, criteria: list(evaluate.criteria) }, check: check && true };
}

/** Calls for work that the script may check: the check is kept here, by position, until the work has ended. */
function checked<T>(kind: string, request: { check?: Judging }, items: readonly unknown[], plainText = false): Promise<T> {
  if (request.check === undefined) return call(kind, judged(request));
  return asked(here(), request.check, items, plainText, () => call<T>(kind, judged(request)));
}

export async function generate(request: api.GenerateRequest & { schema?: api.Schema<any>; check?: Judging }): Promise<any> {
  const value = await checked<api.Text>("generate", request, [request.item], !request.schema);
  return request.schema ? value : written(value);
}

export async function batch(request: api.BatchRequest<any> & { schema?: api.Schema<any>; check?: Judging }): Promise<api.Collected<any>> {
  const items = Array.isArray(request.items) ? request.items : [];
  const position = here();
  return collected(await checked<api.Collected<any>>("batch", request, items, !request.schema), position);
}

export function plan(request: api.PlanRequest & { check?: Judging }): Promise<api.Plan> {
  return checked("plan", request, [request.goal]);
}

/** A judge must not be a relative of the subject's author: of a text that a step delivered, the library knows who that is. */
export function evaluate(request: api.EvaluateRequest): Promise<api.Evaluation> {
  const { author = authorOf(request.subject) } = request;
  return call("evaluate", { ...request, author, criteria: list(request.criteria) });
}

export async function embed(request: { model: api.Models; inputs: readonly api.Body[] }): Promise<number[][]> {
  return (await call<{ vectors: number[][] }>("embed", request)).vectors;
}

export function read(ref: api.Ref | string): Promise<string> {
  return call("read", { ref: typeof ref === "string" ? ref : ref.ref });
}
