"use strict";
var __loopkeeper_program = (() => {
  var __defProp = Object.defineProperty;
  var __getOwnPropDesc = Object.getOwnPropertyDescriptor;
  var __getOwnPropNames = Object.getOwnPropertyNames;
  var __hasOwnProp = Object.prototype.hasOwnProperty;
  var __defNormalProp = (obj, key, value) => key in obj ? __defProp(obj, key, { enumerable: true, configurable: true, writable: true, value }) : obj[key] = value;
  var __name = (target, value) => __defProp(target, "name", { value, configurable: true });
  var __export = (target, all2) => {
    for (var name in all2)
      __defProp(target, name, { get: all2[name], enumerable: true });
  };
  var __copyProps = (to, from, except, desc) => {
    if (from && typeof from === "object" || typeof from === "function") {
      for (let key of __getOwnPropNames(from))
        if (!__hasOwnProp.call(to, key) && key !== except)
          __defProp(to, key, { get: () => from[key], enumerable: !(desc = __getOwnPropDesc(from, key)) || desc.enumerable });
    }
    return to;
  };
  var __toCommonJS = (mod) => __copyProps(__defProp({}, "__esModule", { value: true }), mod);
  var __publicField = (obj, key, value) => __defNormalProp(obj, typeof key !== "symbol" ? key + "" : key, value);

  // loopkeeper:entry
  var loopkeeper_entry_exports = {};
  __export(loopkeeper_entry_exports, {
    check: () => check2,
    describe: () => describe,
    run: () => run,
    version: () => version
  });

  // loopkeeper:border.ts
  var holder = globalThis;
  var request = holder.__loopkeeper_request;
  delete holder.__loopkeeper_request;
  var canonical = request.canonical;

  // loopkeeper:sources.ts
  var objects = /* @__PURE__ */ new WeakMap();
  var texts = /* @__PURE__ */ new Map();
  var succeeded = [];
  function remember(value, within, step) {
    succeeded.push(step);
    if (typeof value === "string") texts.set(fingerprint(value), step);
    for (let i = 0; i < within.length; i++) objects.set(within[i], step);
  }
  __name(remember, "remember");
  function likewise(made, origin) {
    const step = objects.get(origin);
    if (step !== void 0) objects.set(made, step);
    return made;
  }
  __name(likewise, "likewise");
  function sourcesOf(value) {
    const found = /* @__PURE__ */ new Set();
    const note2 = /* @__PURE__ */ __name((step) => step !== void 0 && found.add(step), "note");
    if (typeof value === "string") note2(texts.get(fingerprint(value)));
    visit(value, (object2) => {
      note2(objects.get(object2));
      for (const child of Object.values(object2)) if (typeof child === "string") note2(texts.get(fingerprint(child)));
    });
    return [...found].sort((a, b) => a - b);
  }
  __name(sourcesOf, "sourcesOf");
  function stepsSoFar() {
    return succeeded.slice().sort((a, b) => a - b);
  }
  __name(stepsSoFar, "stepsSoFar");
  function visit(value, see) {
    const seen = /* @__PURE__ */ new Set();
    const waiting = [value];
    while (waiting.length > 0) {
      const next = waiting.pop();
      if (typeof next !== "object" || next === null || seen.has(next)) continue;
      seen.add(next);
      see(next);
      for (const child of Object.values(next)) waiting.push(child);
    }
  }
  __name(visit, "visit");
  function fingerprint(text) {
    return text.length <= 256 ? text : `${text.length}:${text.slice(0, 128)}${text.slice(-128)}`;
  }
  __name(fingerprint, "fingerprint");

  // loopkeeper:host.ts
  var running = false;
  var position = 0;
  var early = [];
  function begin() {
    running = true;
    for (const [kind, json] of early) send(kind, json);
  }
  __name(begin, "begin");
  function send(kind, body) {
    const delivered = request(kind, body);
    position++;
    return delivered;
  }
  __name(send, "send");
  var _StepError = class _StepError extends Error {
    toString() {
      return `step ${this.step} failed (${this.kind}): ${this.message}`;
    }
  };
  __name(_StepError, "StepError");
  var StepError = _StepError;
  Object.defineProperties(StepError.prototype, { name: { value: "StepError" }, kind: { value: "", writable: true }, step: { value: 0, writable: true } });
  function here() {
    return position;
  }
  __name(here, "here");
  var rolledBack = /* @__PURE__ */ __name((position2) => false, "rolledBack");
  async function call(kind, body, from) {
    if (!running) throw new Error(`${kind} can only be called while the workflow runs, not while its file loads`);
    const failure = new StepError();
    const delivered = await send(kind, body);
    if (delivered.err) {
      if (delivered.err.kind === "rolled_back" && rolledBack(delivered.pos)) await new Promise(() => {
      });
      throw Object.assign(failure, delivered.err);
    }
    remember(delivered.value, delivered.objects, from != null ? from : delivered.pos);
    return delivered.value;
  }
  __name(call, "call");
  function note(kind, body) {
    if (running) send(kind, body);
    else early.push([kind, canonical(body, kind)]);
  }
  __name(note, "note");

  // loopkeeper:notes.ts
  function output(name, value, options = {}) {
    var _a;
    if (typeof name !== "string" || name === "") throw new TypeError("output needs a name, a text that is not empty");
    if (value === void 0) throw new TypeError(`output.value is undefined, for "${name}"; only JSON values can leave a workflow`);
    const sources = sourcesOf((_a = options.sources) != null ? _a : value);
    if (sources.length > 0) note("output", { name, value, sources });
    else note("output", { name, value, sources: stepsSoFar(), inferred: true });
  }
  __name(output, "output");
  var writer = /* @__PURE__ */ __name((level) => (...values) => note("log", { level, text: whole(values.map(shown).join(" ")) }), "writer");
  var levels = { debug: writer("debug"), info: writer("info"), warn: writer("warn"), error: writer("error") };
  var log = Object.assign(writer("info"), levels);
  var console = { log: levels.info, ...levels };
  function whole(text) {
    return [...text].map((c) => c.length === 1 && c >= "\uD800" && c <= "\uDFFF" ? "�" : c).join("");
  }
  __name(whole, "whole");
  function shown(value) {
    if (typeof value === "string") return value;
    if (value instanceof Error) return `${value.name}: ${value.message}`;
    try {
      return canonical(value, "");
    } catch (e) {
      return String(value);
    }
  }
  __name(shown, "shown");

  // loopkeeper:text.ts
  function withoutFacts(value) {
    return value.facts ? Object.defineProperty(value, "facts", { enumerable: false }) : value;
  }
  __name(withoutFacts, "withoutFacts");

  // loopkeeper:checks.ts
  var open = /* @__PURE__ */ new Map();
  async function asked(position2, judging, items, plainText, work) {
    if (typeof judging !== "function") throw new TypeError("check must be a function");
    open.set(position2, { judging, items, plainText });
    try {
      return await work();
    } finally {
      open.delete(position2);
    }
  }
  __name(asked, "asked");
  async function answer({ pos, item, value }) {
    const at = open.get(pos);
    if (!at) throw new Error(`no check is under way for step ${pos}`);
    if (at.plainText) withoutFacts(value);
    const reasons = reasonsOf(await at.judging(value, at.items[item], item));
    return canonical(reasons.length === 0 ? { passed: true } : { passed: false, reasons }, "the check");
  }
  __name(answer, "answer");
  function reasonsOf(checked2) {
    if (checked2 === true || checked2 === "") return [];
    if (checked2 === false) return ["it did not pass the workflow's check"];
    if (typeof checked2 === "string") return [checked2];
    if (Array.isArray(checked2) && checked2.every((reason) => typeof reason === "string")) return checked2;
    throw new TypeError("a check returns true, false, a reason, or a list of reasons that is empty when all is well");
  }
  __name(reasonsOf, "reasonsOf");

  // loopkeeper:runtime.ts
  Object.defineProperty(globalThis, "console", { value: console });
  function start(workflow, file2, comment) {
    const { params, description = comment } = workflow;
    function main() {
      if (typeof workflow.default === "function") return workflow.default;
      throw new Error(`${file2} has no default function; a workflow is \`export default async function name(input) { … }\``);
    }
    __name(main, "main");
    function describe2() {
      main();
      return canonical({ description: String(description), params }, file2);
    }
    __name(describe2, "describe");
    async function run2(input) {
      begin();
      const value = await main()(input);
      if (value !== void 0) output("result", value);
      return value === void 0 ? "null" : canonical(value, "the result");
    }
    __name(run2, "run");
    return { version: 3, describe: describe2, run: run2, check: answer };
  }
  __name(start, "start");

  // user:flow.ts
  var flow_exports = {};
  __export(flow_exports, {
    default: () => flow_default
  });

  // loopkeeper:collected.ts
  var places = /* @__PURE__ */ new WeakMap();
  function collected(counted, position2) {
    if (counted.handle !== void 0) return beyondLimit(counted);
    if (position2 !== void 0) placeItems(counted.items, position2);
    return Object.defineProperties(counted, {
      values: { get: /* @__PURE__ */ __name(() => counted.items.filter((item) => item.status === "succeeded").map(valueOf), "get") },
      failures: { get: /* @__PURE__ */ __name(() => counted.items.filter((item) => item.failure).map(failureOf), "get") }
    });
  }
  __name(collected, "collected");
  function beyondLimit(counted) {
    const get = /* @__PURE__ */ __name((name) => () => {
      throw new Error(`this batch has ${counted.total} items, more than a script holds at once, so it has no \`${name}\`: walk them with \`for await (const page of pages(result))\`, or the failures with \`pages(result, { only: "failed" })\``);
    }, "get");
    for (const name of ["items", "values", "failures"]) Object.defineProperty(counted, name, { get: get(name) });
    return counted;
  }
  __name(beyondLimit, "beyondLimit");
  function placeItems(items, step) {
    for (const item of items) places.set(item, { step, item: item.index });
  }
  __name(placeItems, "placeItems");
  function valueOf(item) {
    return item.ref === void 0 ? item.value : likewise({ ref: item.ref, name: item.key, bytes: item.bytes }, item);
  }
  __name(valueOf, "valueOf");
  function failureOf(item) {
    const failure = likewise({ index: item.index, key: item.key, ...item.failure }, item);
    const place = places.get(item);
    if (place) places.set(failure, place);
    return failure;
  }
  __name(failureOf, "failureOf");

  // loopkeeper:calls.ts
  var list = /* @__PURE__ */ __name((criteria) => Array.isArray(criteria) ? criteria : [criteria], "list");
  function judged(request2) {
    const { evaluate: evaluate2, check: check3 } = request2;
    if (evaluate2 === void 0 && check3 === void 0) return request2;
    return { ...request2, evaluate: evaluate2 && { ...evaluate2, criteria: list(evaluate2.criteria) }, check: check3 && true };
  }
  __name(judged, "judged");
  function checked(kind, request2, items, plainText = false) {
    if (request2.check === void 0) return call(kind, judged(request2));
    return asked(here(), request2.check, items, plainText, () => call(kind, judged(request2)));
  }
  __name(checked, "checked");
  async function generate(request2) {
    const value = await checked("generate", request2, [request2.item], !request2.schema);
    return request2.schema ? value : withoutFacts(value);
  }
  __name(generate, "generate");
  async function batch(request2) {
    const items = Array.isArray(request2.items) ? request2.items : [];
    const position2 = here();
    return collected(await checked("batch", request2, items, !request2.schema), position2);
  }
  __name(batch, "batch");

  // loopkeeper:schema.ts
  var _Optional = class _Optional {
    constructor(optional) {
      __publicField(this, "optional", optional);
    }
  };
  __name(_Optional, "Optional");
  var Optional = _Optional;
  var of = /* @__PURE__ */ __name((type) => (options = {}) => ({ type, ...options }), "of");
  function object(properties, options = {}) {
    const schemas = {};
    const required = [];
    for (const [name, property] of Object.entries(properties)) {
      if (property instanceof Optional) schemas[name] = property.optional;
      else {
        schemas[name] = property;
        required.push(name);
      }
    }
    return { type: "object", properties: schemas, required, additionalProperties: false, ...options };
  }
  __name(object, "object");
  var file = /* @__PURE__ */ __name((options = {}) => ({
    type: "object",
    format: "file",
    properties: { ref: { type: "string" }, name: { type: "string" }, bytes: { type: "integer" } },
    required: ["ref"],
    ...options
  }), "file");
  function lines(ref) {
    return { lines: ref };
  }
  __name(lines, "lines");
  var t = {
    object,
    record: /* @__PURE__ */ __name((values, options = {}) => ({ type: "object", additionalProperties: values, ...options }), "record"),
    array: /* @__PURE__ */ __name((items, options = {}) => ({ type: "array", items, ...options }), "array"),
    string: of("string"),
    integer: of("integer"),
    number: of("number"),
    boolean: of("boolean"),
    enum: /* @__PURE__ */ __name((values, options = {}) => ({ enum: values, ...options }), "enum"),
    anyOf: /* @__PURE__ */ __name((...schemas) => ({ anyOf: schemas }), "anyOf"),
    any: /* @__PURE__ */ __name((options = {}) => ({ ...options }), "any"),
    optional: /* @__PURE__ */ __name((schema) => new Optional(schema), "optional"),
    file,
    files: /* @__PURE__ */ __name((options = {}) => ({ type: "array", items: file(), ...options }), "files"),
    lines: /* @__PURE__ */ __name((options = {}) => ({ type: "object", format: "lines", properties: { lines: file() }, required: ["lines"], ...options }), "lines")
  };

  // user:flow.ts
  var flow_default = /* @__PURE__ */ __name(async (input) => {
    const made = await batch({ model: "m", prompt: "{{item}}", items: lines(input.file), schema: {}, check: /* @__PURE__ */ __name((v, item, i) => item === void 0 && i === v || "not " + i, "check") });
    const next = await generate({ model: "m", prompt: "p", item: { n: 2 }, schema: {}, check: /* @__PURE__ */ __name((v, item) => v.n === item.n, "check") });
    return [made.total, next];
  }, "default");

  // loopkeeper:entry
  var { version, describe, run, check: check2 } = start(flow_exports, "flow.ts", "");
  return __toCommonJS(loopkeeper_entry_exports);
})();
