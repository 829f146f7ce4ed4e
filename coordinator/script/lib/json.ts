// JSON as it crosses the border: canonical on the way out, with integers beyond 2^53 as BigInt on the way in.

/** Returns value as canonical JSON: sorted keys, no white space. `what` names the value in errors. */
export function canonical(value: unknown, what: string): string {
  try {
    return write(value, []);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    throw new TypeError(`${what}${error.trail} ${error.why}; only JSON values can leave a workflow`);
  }
}

// The loops below count instead of iterating, because all that a script asks for goes through them, again in each replay.

/** Why a value is no JSON, and where in the whole it is. */
class Refusal {
  trail = "";
  constructor(readonly why: string) {}
}

/** Adds a place to the trail of a refusal on its way out. */
function within(place: string, error: unknown): unknown {
  if (error instanceof Refusal) error.trail = place + error.trail;
  return error;
}

/** `open` holds the objects that are being written, to find one inside itself. */
function write(value: unknown, open: object[]): string {
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
      return value === null ? "null" : writeObject(value, open);
    default:
      throw new Refusal(value === undefined ? "is undefined" : `is a ${typeof value}`);
  }
}

// JSON.stringify escapes half of a pair of code units, as cutting a text in the middle of an emoji leaves one, and no other
// character beyond U+001F. No text can hold it.
const half = /(?:^|[^\\])(?:\\\\)*\\ud[89a-f]/;

function writeString(text: string): string {
  const json = JSON.stringify(text);
  if (json.includes("\\ud") && half.test(json)) {
    throw new Refusal("has half of a character (a lone surrogate), as slice leaves it in the middle of an emoji");
  }
  return json;
}

const plain = Object.prototype;

function writeObject(value: object, open: object[]): string {
  if (open.includes(value)) throw new Refusal("contains itself");
  const list = Array.isArray(value);
  if (!list && (Object.getPrototypeOf(value) !== plain || "toJSON" in value)) {
    const toJSON = (value as { toJSON?: unknown }).toJSON;
    if (typeof toJSON === "function") return write(toJSON.call(value), open);
    refuseOther(value);
  }
  open.push(value);
  const parts = list ? writeElements(value, open) : writeProperties(value as Record<string, unknown>, open);
  open.pop();
  return parts;
}

const keysKnown = new Map<string, string>();

/** The same few keys come again and again. */
function writeKey(key: string): string {
  let text = keysKnown.get(key);
  if (text === undefined) {
    text = writeString(key) + ":";
    if (keysKnown.size < 1000) keysKnown.set(key, text);
  }
  return text;
}

/** A RegExp, an Error or a typed array has its content elsewhere than in properties, and would be an empty object. */
function refuseOther(value: object): void {
  if (value instanceof Promise) throw new Refusal("is a promise; await it first");
  if (value instanceof Map || value instanceof Set) throw new Refusal("is a Map or Set; make it an object or array first");
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  if (kind !== "Object") throw new Refusal(`is of the type ${kind}; make it an object, array or text first`);
}

// Parts are joined at the end, because the interpreter copies both texts at each "+".

function writeElements(value: readonly unknown[], open: object[]): string {
  const parts: string[] = [];
  let i = 0;
  try {
    for (; i < value.length; i++) parts.push(write(value[i], open));
  } catch (error) {
    throw within(`[${i}]`, error);
  }
  return "[" + parts.join(",") + "]";
}

function writeProperties(value: Record<string, unknown>, open: object[]): string {
  const keys = Object.keys(value).sort();
  const parts: string[] = [];
  let i = 0;
  try {
    for (; i < keys.length; i++) {
      const property = value[keys[i]];
      if (property !== undefined) parts.push(writeKey(keys[i]) + write(property, open));
    }
  } catch (error) {
    throw within("." + keys[i], error);
  }
  return "{" + parts.join(",") + "}";
}

// A long run of digits that may be a number: rare enough that the exact, slow reader is for texts that have one.
const longNumber = /(?:^|[[,:])\s*-?[0-9]{16}/;

/** Reads JSON. Integers that a number cannot hold exactly become BigInt. */
export function parse(text: string): any {
  return longNumber.test(text) ? new Reader(text).value() : JSON.parse(text);
}

/** Reads JSON that is known to be valid. */
class Reader {
  private at = 0;
  constructor(private readonly text: string) {}

  value(): unknown {
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

  private object(): object {
    const object: Record<string, unknown> = {};
    for (this.at++; this.text[this.at] !== "}"; this.skip(",")) {
      const key = this.string();
      this.skip(":");
      Object.defineProperty(object, key, { value: this.value(), writable: true, enumerable: true, configurable: true });
    }
    this.at++;
    return object;
  }

  private array(): unknown[] {
    const array: unknown[] = [];
    for (this.at++; this.text[this.at] !== "]"; this.skip(",")) array.push(this.value());
    this.at++;
    return array;
  }

  private string(): string {
    const from = this.at++;
    while (this.text[this.at] !== '"') this.at += this.text[this.at] === "\\" ? 2 : 1;
    return JSON.parse(this.text.slice(from, ++this.at));
  }

  private scalar(): unknown {
    const from = this.at;
    while (this.at < this.text.length && !",]}".includes(this.text[this.at])) this.at++;
    const token = this.text.slice(from, this.at);
    const value = JSON.parse(token);
    const exact = typeof value !== "number" || Number.isSafeInteger(value) || !/^-?[0-9]+$/.test(token);
    return exact ? value : BigInt(token);
  }

  private skip(separator: string): void {
    if (this.text[this.at] === separator) this.at++;
  }
}
