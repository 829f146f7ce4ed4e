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

  // loopkeeper:json.ts
  function canonical(value, what) {
    try {
      return write(value, []);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw new TypeError(`${what}${error.trail} ${error.why}; only JSON values can leave a workflow`);
    }
  }
  __name(canonical, "canonical");
  var _Refusal = class _Refusal {
    constructor(why) {
      __publicField(this, "why", why);
      __publicField(this, "trail", "");
    }
  };
  __name(_Refusal, "Refusal");
  var Refusal = _Refusal;
  function within(place, error) {
    if (error instanceof Refusal) error.trail = place + error.trail;
    return error;
  }
  __name(within, "within");
  function write(value, open2) {
    switch (typeof value) {
      case "string":
        return writeString(value);
      case "boolean":
      case "bigint":
        return String(value);
      case "number":
        if (!Number.isFinite(value)) throw new Refusal(`is ${value}, which JSON cannot say`);
        return String(value);
      case "object":
        return value === null ? "null" : writeObject(value, open2);
      default:
        throw new Refusal(value === void 0 ? "is undefined" : `is a ${typeof value}`);
    }
  }
  __name(write, "write");
  var half = /(?:^|[^\\])(?:\\\\)*\\ud[89a-f]/;
  function writeString(text) {
    const json = JSON.stringify(text);
    if (json.includes("\\ud") && half.test(json)) {
      throw new Refusal("has half of a character (a lone surrogate), as slice leaves it in the middle of an emoji");
    }
    return json;
  }
  __name(writeString, "writeString");
  var plain = Object.prototype;
  function writeObject(value, open2) {
    if (open2.includes(value)) throw new Refusal("contains itself");
    const list2 = Array.isArray(value);
    if (!list2 && (Object.getPrototypeOf(value) !== plain || "toJSON" in value)) {
      const toJSON = value.toJSON;
      if (typeof toJSON === "function") return write(toJSON.call(value), open2);
      refuseOther(value);
    }
    open2.push(value);
    const parts = list2 ? writeElements(value, open2) : writeProperties(value, open2);
    open2.pop();
    return parts;
  }
  __name(writeObject, "writeObject");
  var keysKnown = /* @__PURE__ */ new Map();
  function writeKey(key) {
    let text = keysKnown.get(key);
    if (text === void 0) {
      text = writeString(key) + ":";
      if (keysKnown.size < 1e3) keysKnown.set(key, text);
    }
    return text;
  }
  __name(writeKey, "writeKey");
  function refuseOther(value) {
    if (value instanceof Promise) throw new Refusal("is a promise; await it first");
    if (value instanceof Map || value instanceof Set) throw new Refusal("is a Map or Set; make it an object or array first");
    const kind = Object.prototype.toString.call(value).slice(8, -1);
    if (kind !== "Object") throw new Refusal(`is of the type ${kind}; make it an object, array or text first`);
  }
  __name(refuseOther, "refuseOther");
  function writeElements(value, open2) {
    const parts = [];
    let i = 0;
    try {
      for (; i < value.length; i++) parts.push(write(value[i], open2));
    } catch (error) {
      throw within(`[${i}]`, error);
    }
    return "[" + parts.join(",") + "]";
  }
  __name(writeElements, "writeElements");
  function writeProperties(value, open2) {
    const keys = Object.keys(value).sort();
    const parts = [];
    let i = 0;
    try {
      for (; i < keys.length; i++) {
        const property = value[keys[i]];
        if (property !== void 0) parts.push(writeKey(keys[i]) + write(property, open2));
      }
    } catch (error) {
      throw within("." + keys[i], error);
    }
    return "{" + parts.join(",") + "}";
  }
  __name(writeProperties, "writeProperties");
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
    else mark(value, step);
  }
  __name(remember, "remember");
  function mark(value, step) {
    if (typeof value !== "object" || value === null) return;
    objects.set(value, step);
    const children = Object.values(value);
    for (let i = 0; i < children.length; i++) if (typeof children[i] === "object") mark(children[i], step);
  }
  __name(mark, "mark");
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
    const delivered = parse(await send(kind, canonical(body, kind)));
    if (delivered.err) {
      if (delivered.err.kind === "rolled_back" && rolledBack(delivered.pos)) await new Promise(() => {
      });
      throw Object.assign(failure, delivered.err);
    }
    remember(delivered.value, from != null ? from : delivered.pos);
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
  var writer = /* @__PURE__ */ __name((level) => (...values) => note("log", { level, text: whole(values.map(shown).join(" ")) }), "writer");
  var levels = { debug: writer("debug"), info: writer("info"), warn: writer("warn"), error: writer("error") };
  var log = Object.assign(writer("info"), levels);
  var console2 = { log: levels.info, ...levels };
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
  async function answer(json) {
    const { pos, item = 0, value } = parse(json);
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
    return { version: 2, describe: describe2, run: run2, check: answer };
  }
  __name(start, "start");

  // user:flow.ts
  var flow_exports = {};
  __export(flow_exports, {
    default: () => flow_default
  });

  // loopkeeper:calls.ts
  var list = /* @__PURE__ */ __name((criteria) => typeof criteria === "string" ? [criteria] : criteria, "list");
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
  function read(ref) {
    return call("read", { ref: typeof ref === "string" ? ref : ref.ref });
  }
  __name(read, "read");

  // loopkeeper:waits.ts
  function approve(request2) {
    return call("approve", request2);
  }
  __name(approve, "approve");

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
    console.log("start", uuid());
    const big = await generate({ model: "m", prompt: "p", item: input.n, schema: {}, check: /* @__PURE__ */ __name((v) => v.ok || "not ok", "check") });
    output("n", big);
    const done = await approve({ title: "go on?", show: [{ at: /* @__PURE__ */ new Date(0) }] });
    try {
      await read("aa");
    } catch (e) {
      return [e.kind, e.step, done.outcome];
    }
  }, "default");

  // loopkeeper:entry
  var { version, describe, run, check: check2 } = start(flow_exports, "flow.ts", "");
  return __toCommonJS(loopkeeper_entry_exports);
})();
