// Builds JSON Schemas. The types that go with them are in loopkeeper.d.ts.

type Schema = Record<string, unknown>;

class Optional {
  constructor(readonly optional: Schema) {}
}

const of = (type: string) => (options: object = {}): Schema => ({ type, ...options });

function object(properties: Record<string, Schema | Optional>, options: object = {}): Schema {
  const schemas: Record<string, Schema> = {};
  const required: string[] = [];
  for (const [name, property] of Object.entries(properties)) {
    if (property instanceof Optional) schemas[name] = property.optional;
    else {
      schemas[name] = property;
      required.push(name);
    }
  }
  return { type: "object", properties: schemas, required, additionalProperties: false, ...options };
}

const file = (options: object = {}): Schema => ({
  type: "object",
  format: "file",
  properties: { ref: { type: "string" }, name: { type: "string" }, bytes: { type: "integer" } },
  required: ["ref"],
  ...options,
});

export function lines(ref: { ref: string }): { lines: { ref: string } } {
  return { lines: ref };
}

export const t: any = {
  object,
  record: (values: Schema, options: object = {}): Schema => ({ type: "object", additionalProperties: values, ...options }),
  array: (items: Schema, options: object = {}): Schema => ({ type: "array", items, ...options }),
  string: of("string"),
  integer: of("integer"),
  number: of("number"),
  boolean: of("boolean"),
  enum: (values: readonly (string | number)[], options: object = {}): Schema => ({ enum: values, ...options }),
  anyOf: (...schemas: Schema[]): Schema => ({ anyOf: schemas }),
  any: (options: object = {}): Schema => ({ ...options }),
  optional: (schema: Schema) => new Optional(schema),
  file,
  files: (options: object = {}): Schema => ({ type: "array", items: file(), ...options }),
  lines: (options: object = {}): Schema => ({ type: "object", format: "lines", properties: { lines: file() }, required: ["lines"], ...options }),
};
