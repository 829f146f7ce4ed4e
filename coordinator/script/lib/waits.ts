// The primitives that wait: for a time, for a person, for what happens outside, for another run.
import type * as api from "loopkeeper";
import { call } from "./host";

export async function sleep(wait: number | { seconds?: number; until?: Date | string; label?: string }): Promise<void> {
  const request = typeof wait === "number" ? { seconds: wait } : wait;
  if ((request.seconds === undefined) === (request.until === undefined)) throw new TypeError("sleep needs seconds or until, one of them");
  await call("sleep", request);
}

export function approve(request: api.ApproveRequest): Promise<api.Approval> {
  return call("approve", shown(request));
}

export function question(request: api.QuestionRequest): Promise<api.Answer<any>> {
  return call("question", shown(request));
}

// One thing to look at may stand for a list of one.
function shown<R extends api.Asked>(request: R): R {
  return request.show === undefined || Array.isArray(request.show) ? request : { ...request, show: [request.show] };
}

export function tool(name: string, input: unknown, options: api.ToolOptions = {}): Promise<any> {
  return call("tool", { ...options, name, input });
}

export function spawn(request: api.SpawnRequest): Promise<any> {
  return call("spawn", request);
}
