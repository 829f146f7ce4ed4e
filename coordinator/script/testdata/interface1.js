"use strict";
var __loopkeeper_program = (() => {
  var __defProp = Object.defineProperty;
  var __defProps = Object.defineProperties;
  var __getOwnPropDesc = Object.getOwnPropertyDescriptor;
  var __getOwnPropDescs = Object.getOwnPropertyDescriptors;
  var __getOwnPropNames = Object.getOwnPropertyNames;
  var __getOwnPropSymbols = Object.getOwnPropertySymbols;
  var __hasOwnProp = Object.prototype.hasOwnProperty;
  var __propIsEnum = Object.prototype.propertyIsEnumerable;
  var __defNormalProp = (obj, key, value) => key in obj ? __defProp(obj, key, { enumerable: true, configurable: true, writable: true, value }) : obj[key] = value;
  var __spreadValues = (a, b) => {
    for (var prop in b || (b = {}))
      if (__hasOwnProp.call(b, prop))
        __defNormalProp(a, prop, b[prop]);
    if (__getOwnPropSymbols)
      for (var prop of __getOwnPropSymbols(b)) {
        if (__propIsEnum.call(b, prop))
          __defNormalProp(a, prop, b[prop]);
      }
    return a;
  };
  var __spreadProps = (a, b) => __defProps(a, __getOwnPropDescs(b));
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
    describe: () => describe,
    run: () => run
  });

  // loopkeeper:json.ts
  function canonical(value, what) {
    return write(value, [what], /* @__PURE__ */ new Set());
  }
  __name(canonical, "canonical");
  function write(value, trail, open) {
    switch (typeof value) {
      case "string":
        return writeString(value, trail);
      case "boolean":
      case "bigint":
        return String(value);
      case "number":
        if (!Number.isFinite(value)) throw refuse(trail, `is ${value}, which JSON cannot say`);
        return String(value);
      case "object":
        return value === null ? "null" : writeObject(value, trail, open);
      default:
        throw refuse(trail, value === void 0 ? "is undefined" : `is a ${typeof value}`);
    }
  }
  __name(write, "write");
  var half = /(?:^|[^\\])(?:\\\\)*\\ud[89a-f]/;
  function writeString(text, trail) {
    const json = JSON.stringify(text);
    if (json.includes("\\ud") && half.test(json)) {
      throw refuse(trail, "has half of a character (a lone surrogate), as slice leaves it in the middle of an emoji");
    }
    return json;
  }
  __name(writeString, "writeString");
  function writeObject(value, trail, open) {
    if (open.has(value)) throw refuse(trail, "contains itself");
    if (value instanceof Promise) throw refuse(trail, "is a promise; await it first");
    if (value instanceof Map || value instanceof Set) throw refuse(trail, "is a Map or Set; make it an object or array first");
    const toJSON = value.toJSON;
    if (typeof toJSON === "function") return write(toJSON.call(value), trail, open);
    const kind = Object.prototype.toString.call(value).slice(8, -1);
    if (kind !== "Object" && kind !== "Array") throw refuse(trail, `is of the type ${kind}; make it an object, array or text first`);
    open.add(value);
    const parts = Array.isArray(value) ? writeElements(value, trail, open) : writeProperties(value, trail, open);
    open.delete(value);
    return parts;
  }
  __name(writeObject, "writeObject");
  function writeElements(value, trail, open) {
    const parts = [];
    for (let i = 0; i < value.length; i++) {
      trail.push(`[${i}]`);
      parts.push(write(value[i], trail, open));
      trail.pop();
    }
    return "[" + parts.join(",") + "]";
  }
  __name(writeElements, "writeElements");
  function writeProperties(value, trail, open) {
    const parts = [];
    for (const key of Object.keys(value).sort()) {
      const property = value[key];
      if (property === void 0) continue;
      trail.push("." + key);
      parts.push(writeString(key, trail) + ":" + write(property, trail, open));
      trail.pop();
    }
    return "{" + parts.join(",") + "}";
  }
  __name(writeProperties, "writeProperties");
  function refuse(trail, why) {
    return new TypeError(`${trail.join("")} ${why}; only JSON values can leave a workflow`);
  }
  __name(refuse, "refuse");
  var longNumber = /(?:^|[[,:])\s*-?[0-9]{16}/;
  function parse(text) {
    return longNumber.test(text) ? new Reader(text).value() : JSON.parse(text);
  }
  __name(parse, "parse");
  var _Reader = class _Reader {
    constructor(text) {
      __publicField(this, "text", text);
      __publicField(this, "at", 0);
    }
    value() {
      switch (this.text[this.at]) {
        case "{":
          return this.object();
        case "[":
          return this.array();
        case '"':
          return this.string();
        default:
          return this.scalar();
      }
    }
    object() {
      const object2 = {};
      for (this.at++; this.text[this.at] !== "}"; this.skip(",")) {
        const key = this.string();
        this.skip(":");
        Object.defineProperty(object2, key, { value: this.value(), writable: true, enumerable: true, configurable: true });
      }
      this.at++;
      return object2;
    }
    array() {
      const array = [];
      for (this.at++; this.text[this.at] !== "]"; this.skip(",")) array.push(this.value());
      this.at++;
      return array;
    }
    string() {
      const from = this.at++;
      while (this.text[this.at] !== '"') this.at += this.text[this.at] === "\\" ? 2 : 1;
      return JSON.parse(this.text.slice(from, ++this.at));
    }
    scalar() {
      const from = this.at;
      while (this.at < this.text.length && !",]}".includes(this.text[this.at])) this.at++;
      const token = this.text.slice(from, this.at);
      const value = JSON.parse(token);
      const exact = typeof value !== "number" || Number.isSafeInteger(value) || !/^-?[0-9]+$/.test(token);
      return exact ? value : BigInt(token);
    }
    skip(separator) {
      if (this.text[this.at] === separator) this.at++;
    }
  };
  __name(_Reader, "Reader");
  var Reader = _Reader;

  // loopkeeper:sources.ts
  var objects = /* @__PURE__ */ new WeakMap();
  var texts = /* @__PURE__ */ new Map();
  var succeeded = [];
  function remember(value, step) {
    succeeded.push(step);
    if (typeof value === "string") texts.set(fingerprint(value), step);
    else visit(value, (object2) => objects.set(object2, step));
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
  var holder = globalThis;
  var request = holder.__loopkeeper_request;
  delete holder.__loopkeeper_request;
  var running = false;
  var position = 0;
  var early = [];
  function begin() {
    running = true;
    for (const [kind, json] of early) send(kind, json);
  }
  __name(begin, "begin");
  function send(kind, json) {
    position++;
    return request(kind, json);
  }
  __name(send, "send");
  var _StepError = class _StepError extends Error {
    constructor() {
      super(...arguments);
      __publicField(this, "kind", "");
      __publicField(this, "step", 0);
    }
    toString() {
      return `step ${this.step} failed (${this.kind}): ${this.message}`;
    }
  };
  __name(_StepError, "StepError");
  var StepError = _StepError;
  Object.defineProperty(StepError.prototype, "name", { value: "StepError" });
  async function call(kind, body) {
    if (!running) throw new Error(`${kind} can only be called while the workflow runs, not while its file loads`);
    const failure = new StepError();
    const delivered = parse(await send(kind, canonical(body, kind)));
    if (delivered.err) throw Object.assign(failure, delivered.err);
    remember(delivered.value, delivered.pos);
    return delivered.value;
  }
  __name(call, "call");
  function note(kind, body) {
    const json = canonical(body, kind);
    if (running) send(kind, json);
    else early.push([kind, json]);
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
  function collect(label, failures) {
    note("collected", { label, failures: failures.map(({ key, message, kind, step }) => ({ key, message, kind, step })) });
  }
  __name(collect, "collect");
  var writer = /* @__PURE__ */ __name((level) => (...values) => note("log", { level, text: whole(values.map(shown).join(" ")) }), "writer");
  var levels = { debug: writer("debug"), info: writer("info"), warn: writer("warn"), error: writer("error") };
  var log = Object.assign(writer("info"), levels);
  var console2 = __spreadValues({ log: levels.info }, levels);
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

  // loopkeeper:runtime.ts
  Object.defineProperty(globalThis, "console", { value: console2 });
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
      const value = await main()(parse(input));
      if (value !== void 0) output("result", value);
      return value === void 0 ? "null" : canonical(value, "the result");
    }
    __name(run2, "run");
    return { describe: describe2, run: run2 };
  }
  __name(start, "start");

  // user:flow.ts
  var flow_exports = {};
  __export(flow_exports, {
    default: () => first
  });

  // loopkeeper:collected.ts
  function collected(counted) {
    return Object.defineProperties(counted, {
      values: { get: /* @__PURE__ */ __name(() => counted.items.filter((item) => item.status === "succeeded").map(valueOf), "get") },
      failures: { get: /* @__PURE__ */ __name(() => counted.items.filter((item) => item.failure).map(failureOf), "get") }
    });
  }
  __name(collected, "collected");
  function valueOf(item) {
    return item.ref === void 0 ? item.value : likewise({ ref: item.ref, name: item.key, bytes: item.bytes }, item);
  }
  __name(valueOf, "valueOf");
  function failureOf(item) {
    return likewise(__spreadValues({ key: item.key }, item.failure), item);
  }
  __name(failureOf, "failureOf");
  function keyOf(item, index) {
    const name = item == null ? void 0 : item.name;
    return typeof name === "string" ? name : String(index);
  }
  __name(keyOf, "keyOf");

  // loopkeeper:calls.ts
  var list = /* @__PURE__ */ __name((criteria) => typeof criteria === "string" ? [criteria] : criteria, "list");
  function judged(request2) {
    if (!request2.evaluate) return request2;
    return __spreadProps(__spreadValues({}, request2), { evaluate: __spreadProps(__spreadValues({}, request2.evaluate), { criteria: list(request2.evaluate.criteria) }) });
  }
  __name(judged, "judged");
  async function generate(request2) {
    const value = await call("generate", judged(request2));
    if (!request2.schema && value.facts) Object.defineProperty(value, "facts", { enumerable: false });
    return value;
  }
  __name(generate, "generate");
  async function batch(request2) {
    return collected(await call("batch", judged(request2)));
  }
  __name(batch, "batch");
  function read(ref) {
    return call("read", { ref: typeof ref === "string" ? ref : ref.ref });
  }
  __name(read, "read");

  // loopkeeper:parallel.ts
  var defaultConcurrency = 16;
  async function each(items, work, options = {}) {
    var _a, _b, _c;
    const name = (_a = options.key) != null ? _a : keyOf;
    const ended = new Array(items.length);
    let next = 0;
    const worker = /* @__PURE__ */ __name(async () => {
      while (next < items.length) {
        const index = next++;
        ended[index] = await attempt(name(items[index], index), index, () => work(items[index], index));
      }
    }, "worker");
    const workers = Math.min(items.length, Math.max(1, (_b = options.concurrency) != null ? _b : defaultConcurrency));
    await Promise.all(Array.from({ length: workers }, worker));
    const succeeded2 = ended.filter((item) => item.status === "succeeded").length;
    const total = items.length;
    const result = collected({ total, succeeded: succeeded2, failed: total - succeeded2, coverage: total === 0 ? 1 : succeeded2 / total, items: ended });
    if (succeeded2 < total) collect((_c = options.label) != null ? _c : "each", result.failures);
    return result;
  }
  __name(each, "each");
  async function attempt(key, index, work) {
    try {
      return { index, key, status: "succeeded", value: await work() };
    } catch (error) {
      return { index, key, status: "failed", failure: failureOf2(error) };
    }
  }
  __name(attempt, "attempt");
  function failureOf2(error) {
    if (!(error instanceof Error)) return { kind: "threw", message: String(error) };
    const { kind = "threw", step } = error;
    return { kind, message: error.message, step };
  }
  __name(failureOf2, "failureOf");

  // loopkeeper:determined.ts
  function uuid() {
    let hex = "";
    for (let i = 0; i < 8; i++) hex += Math.floor(Math.random() * 65536).toString(16).padStart(4, "0");
    const variant = "89ab"[parseInt(hex[16], 16) & 3];
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  }
  __name(uuid, "uuid");

  // loopkeeper:schema.ts
  var _Optional = class _Optional {
    constructor(optional) {
      __publicField(this, "optional", optional);
    }
  };
  __name(_Optional, "Optional");
  var Optional = _Optional;
  var of = /* @__PURE__ */ __name((type) => (options = {}) => __spreadValues({ type }, options), "of");
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
    return __spreadValues({ type: "object", properties: schemas, required, additionalProperties: false }, options);
  }
  __name(object, "object");
  var file = /* @__PURE__ */ __name((options = {}) => __spreadValues({
    type: "object",
    format: "file",
    properties: { ref: { type: "string" }, name: { type: "string" }, bytes: { type: "integer" } },
    required: ["ref"]
  }, options), "file");
  var t = {
    object,
    record: /* @__PURE__ */ __name((values, options = {}) => __spreadValues({ type: "object", additionalProperties: values }, options), "record"),
    array: /* @__PURE__ */ __name((items, options = {}) => __spreadValues({ type: "array", items }, options), "array"),
    string: of("string"),
    integer: of("integer"),
    number: of("number"),
    boolean: of("boolean"),
    enum: /* @__PURE__ */ __name((values, options = {}) => __spreadValues({ enum: values }, options), "enum"),
    anyOf: /* @__PURE__ */ __name((...schemas) => ({ anyOf: schemas }), "anyOf"),
    any: /* @__PURE__ */ __name((options = {}) => __spreadValues({}, options), "any"),
    optional: /* @__PURE__ */ __name((schema) => new Optional(schema), "optional"),
    file,
    files: /* @__PURE__ */ __name((options = {}) => __spreadValues({ type: "array", items: file() }, options), "files")
  };

  // user:flow.ts
  async function first(input) {
    console.log("start", uuid());
    const found = await batch({ model: "m", prompt: "{{item}}", items: input.files });
    const texts2 = await each(found.values, (ref) => read(ref));
    output("texts", texts2.values);
    return generate({ model: "m", prompt: "p", item: texts2.values });
  }
  __name(first, "first");

  // loopkeeper:entry
  var { describe, run } = start(flow_exports, "flow.ts", "A program of the first version.");
  return __toCommonJS(loopkeeper_entry_exports);
})();
