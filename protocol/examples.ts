import type { JsonSchema } from "./json-schema.ts";
import { type MethodName, methods } from "./methods.ts";

/** A call of a method and its answer. */
export interface Example {
  readonly params: Readonly<Record<string, unknown>>;
  readonly result: unknown;
}

export interface ExampleOptions {
  /** Whether to include optional properties. Default: false. */
  readonly withOptional?: boolean;
}

/** Values for properties with these names; the first value that fits the schema is taken. */
const byName: Readonly<Record<string, readonly unknown[]>> = {
  sessionId: ["01920000-0000-7000-8000-000000000001"],
  from: ["01920000-0000-7000-8000-000000000001"],
  to: ["01920000-0000-7000-8000-000000000002"],
  deliveryId: ["build-318"],
  promptId: ["01920000-0000-7000-8000-000000000003"],
  dialogId: ["01920000-0000-7000-8000-000000000004"],
  runId: ["01920000-0000-7000-8000-000000000005"],
  requestId: ["01920000-0000-7000-8000-000000000006"],
  clientId: ["01920000-0000-7000-8000-000000000007"],
  entryId: ["a1b2c3d4"],
  epoch: ["5f0c9e6a1b2d"],
  cwd: ["/home/ada/project"],
  path: ["/home/ada/project/notes.md"],
  file: ["/home/ada/.pi/agent/sessions/project/1.jsonl"],
  name: ["ci", "get_state"],
  text: ["Fix the failing test."],
  content: ["The nightly build is green."],
  customType: ["build"],
  command: ["npm test"],
  model: ["scripted/model-1"],
  provider: ["scripted"],
  modelId: ["model-1"],
  version: ["0.1.0"],
  at: [1_795_231_512_538],
};

/** Texts for other properties: the first that matches the pattern. */
const texts = [
  "text",
  "/home/ada/project",
  "01920000-0000-7000-8000-000000000001",
  "0123456789abcdef".repeat(4),
  "50%",
  "m001",
  "b1",
  "1795231512538/a",
  "image/png",
  "service",
  "http://127.0.0.1:41234/",
  "web-1",
  "bm90IGEgc2VjcmV0LCBidXQgYW4gZXhhbXBsZSBvZi4",
];

/**
 * An example call of each method and its answer, built from the method's schemas: the required params, and the
 * required fields of the result. A test validates them against the schemas.
 */
export function exampleOf(method: MethodName): Example {
  const { params, result } = methods[method];
  return {
    params: valueFor(params as JsonSchema) as Example["params"],
    result: valueFor(result as JsonSchema),
  };
}

/** A value that a schema allows. Throws if none of the known texts fits. */
export function exampleValue(schema: object, options: ExampleOptions = {}): unknown {
  return valueFor(schema as JsonSchema, "", options);
}

function valueFor(schema: JsonSchema, name = "", options: ExampleOptions = {}): unknown {
  if (schema.const !== undefined) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.anyOf !== undefined) return valueFor(schema.anyOf[0] as JsonSchema, name, options);
  const known = byName[name]?.find((value) => allows(schema, value));
  if (known !== undefined) return known;
  switch (schema.type) {
    case "string":
      return textOf(schema, name);
    case "integer":
    case "number":
      return numberOf(schema);
    case "boolean":
      return true;
    case "array":
      return schema.items === undefined ? [] : [valueFor(schema.items, name, options)];
    case "object":
      return objectOf(schema, options);
    case "null":
      return null;
    default:
      return {};
  }
}

function objectOf(schema: JsonSchema, options: ExampleOptions): Readonly<Record<string, unknown>> {
  const { properties = {}, required = [], patternProperties = {}, minProperties = 0, propertyNames = {} } = schema;
  const value = Object.fromEntries(
    Object.entries(properties)
      .filter(([name]) => options.withOptional === true || required.includes(name))
      .map(([name, property]) => [name, valueFor(property, name, options)]),
  );
  const [rest] = Object.values(patternProperties);
  if (rest === undefined || (options.withOptional !== true && minProperties === 0)) return value;
  return { ...value, [textOf(propertyNames, "")]: valueFor(rest, "", options) };
}

function numberOf({ minimum, exclusiveMinimum, maximum = Number.POSITIVE_INFINITY, type }: JsonSchema): number {
  if (minimum !== undefined) return Math.max(minimum, Math.min(1, maximum));
  if (exclusiveMinimum === undefined) return Math.min(1, maximum);
  return Math.min(exclusiveMinimum + 1, type === "integer" ? maximum : (exclusiveMinimum + maximum) / 2);
}

function textOf(schema: JsonSchema, name: string): string {
  const found = texts.find((text) => allows({ ...schema, type: "string" }, text));
  if (found === undefined) throw new Error(`No example fits "${name}": ${schema.pattern}`);
  return found;
}

function allows(
  { type, pattern, minLength = 0, maxLength = Number.POSITIVE_INFINITY }: JsonSchema,
  value: unknown,
): boolean {
  if (typeof value === "number") return type === "integer" || type === "number";
  if (typeof value !== "string" || type !== "string") return false;
  if (value.length < minLength || value.length > maxLength) return false;
  return pattern === undefined || new RegExp(pattern, "u").test(value);
}
