// JSON as it crosses the border: canonical on the way out, with integers beyond 2^53 as BigInt on the way in.

/** Returns value as canonical JSON: sorted keys, no white space. `what` names the value in errors. */
export function canonical(value: unknown, what: string): string {
  return write(value, [what], new Set());
}

function write(value: unknown, trail: string[], open: Set<object>): string {
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
      throw refuse(trail, value === undefined ? "is undefined" : `is a ${typeof value}`);
  }
}

// JSON.stringify escapes half of a pair of code units, as cutting a text in the middle of an emoji leaves one, and no other
// character beyond U+001F. No text can hold it.
const half = /(?:^|[^\\])(?:\\\\)*\\ud[89a-f]/;

function writeString(text: string, trail: string[]): string {
  const json = JSON.stringify(text);
  if (json.includes("\\ud") && half.test(json)) {
    throw refuse(trail, "has half of a character (a lone surrogate), as slice leaves it in the middle of an emoji");
  }
  return json;
}

function writeObject(value: object, trail: string[], open: Set<object>): string {
  if (open.has(value)) throw refuse(trail, "contains itself");
  if (value instanceof Promise) throw refuse(trail, "is a promise; await it first");
  if (value instanceof Map || value instanceof Set) throw refuse(trail, "is a Map or Set; make it an object or array first");
  const toJSON = (value as { toJSON?: unknown }).toJSON;
  if (typeof toJSON === "function") return write(toJSON.call(value), trail, open);
  // A RegExp, an Error or a typed array has its content elsewhere than in properties, and would be an empty object.
  const kind = Object.prototype.toString.call(value).slice(8, -1);
  if (kind !== "Object" && kind !== "Array") throw refuse(trail, `is of the type ${kind}; make it an object, array or text first`);
  open.add(value);
  const parts = Array.isArray(value) ? writeElements(value, trail, open) : writeProperties(value, trail, open);
  open.delete(value);
  return parts;
}

function writeElements(value: readonly unknown[], trail: string[], open: Set<object>): string {
  const parts: string[] = [];
  for (let i = 0; i < value.length; i++) {
    trail.push(`[${i}]`);
    parts.push(write(value[i], trail, open));
    trail.pop();
  }
  return "[" + parts.join(",") + "]";
}

function writeProperties(value: object, trail: string[], open: Set<object>): string {
  const parts: string[] = [];
  for (const key of Object.keys(value).sort()) {
    const property = (value as Record<string, unknown>)[key];
    if (property === undefined) continue;
    trail.push("." + key);
    parts.push(writeString(key, trail) + ":" + write(property, trail, open));
    trail.pop();
  }
  return "{" + parts.join(",") + "}";
}

function refuse(trail: string[], why: string): TypeError {
  return new TypeError(`${trail.join("")} ${why}; only JSON values can leave a workflow`);
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
