import type { ErrorObject, Options, ValidateFunction } from "ajv";
import type { ParamsFinding } from "./errors.ts";
import { type MethodName, methods } from "./methods.ts";
import { type NotificationName, notifications } from "./notifications.ts";
import { patternWords } from "./pattern-words.ts";

/** Checks values against the wire's schemas. Schemas are compiled at their first use. */
export interface Validator {
  /** The findings of a method's params, at most 32; empty if they are valid. */
  params(method: MethodName, value: unknown): readonly ParamsFinding[];
  result(method: MethodName, value: unknown): readonly ParamsFinding[];
  notification(name: NotificationName, value: unknown): readonly ParamsFinding[];
  /** The findings of a value against a schema of our own. */
  schema(schema: object, value: unknown): readonly ParamsFinding[];
}

const maxFindings = 32;

/** A value with more nodes than this gets its first finding only: a hostile one must not cost an object per node. */
const maxNodesForAllFindings = 2_000;

export interface ValidatorOptions {
  /**
   * Accepts additions of later protocol versions: unknown fields, and unknown values of enumerations. Default: false.
   */
  readonly ignoreUnknown?: boolean;
}

/** A set of checks: what they report, and what they accept. */
export interface Checks extends Required<ValidatorOptions> {
  /** Reports all findings of a value, not the first alone. */
  readonly allErrors: boolean;
  /** Removes unknown fields from the value, instead of refusing it. */
  readonly removeUnknown: boolean;
}

/** Returns the function that checks values against a schema. */
export type Compile = (schema: object) => ValidateFunction;

/** Creates a validator whose schemas are compiled by `compilerOf`, each at its first use. */
export function validatorWith(
  compilerOf: (checks: Checks) => Compile,
  { ignoreUnknown = false }: ValidatorOptions = {},
): Validator {
  const first = once(compilerOf({ allErrors: false, ignoreUnknown, removeUnknown: false }));
  const all = once(compilerOf({ allErrors: true, ignoreUnknown, removeUnknown: false }));

  function check(schema: object, value: unknown): readonly ParamsFinding[] {
    const validate = first(schema);
    if (validate(value)) return [];
    if (countNodes(value, maxNodesForAllFindings) > maxNodesForAllFindings) return findingsOf(validate);
    const validateAll = all(schema);
    validateAll(value);
    return findingsOf(validateAll);
  }

  return {
    params: (method, value) => check(methods[method].params, value),
    result: (method, value) => check(methods[method].result, value),
    notification: (name, value) => check(notifications[name].params, value),
    schema: check,
  };
}

/** Compiles each schema once. */
export function once(compile: Compile): Compile {
  const compiled = new WeakMap<object, ValidateFunction>();
  return (schema) => {
    let validate = compiled.get(schema);
    if (validate === undefined) {
      validate = compile(schema);
      compiled.set(schema, validate);
    }
    return validate;
  };
}

/** The options of ajv for these checks. Our own schemas are not validated. */
export function ajvOptions({ allErrors, removeUnknown }: Checks): Options {
  return { strict: false, allErrors, meta: false, validateSchema: false, removeAdditional: removeUnknown };
}

/** The schema that ajv compiles for these checks. */
export function checkedSchema(schema: object, { ignoreUnknown }: Checks): object {
  return ignoreUnknown ? (opened(schema) as object) : schema;
}

/** A schema that accepts additions of later protocol versions. */
function opened(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(opened);
  if (typeof schema !== "object" || schema === null) return schema;
  const { additionalProperties, enum: words, ...rest } = schema as Readonly<Record<string, unknown>>;
  const isOfWords = Array.isArray(words) && words.every((word) => typeof word === "string");
  return {
    ...Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, openedAt(key, value)])),
    ...(typeof additionalProperties === "object" && { additionalProperties: opened(additionalProperties) }),
    ...(isOfWords ? { type: "string" } : words !== undefined && { enum: words }),
  };
}

function openedAt(keyword: string, value: unknown): unknown {
  if (["items", "anyOf", "allOf"].includes(keyword)) return opened(value);
  if (keyword !== "properties" && keyword !== "patternProperties") return value;
  return Object.fromEntries(Object.entries(value as object).map(([name, schema]) => [name, opened(schema)]));
}

/** The number of values inside a value, counted until just above `limit`. */
function countNodes(value: unknown, limit: number): number {
  let count = 0;
  const open: unknown[] = [value];
  while (open.length > 0 && count <= limit) {
    const next = open.pop();
    count += 1;
    if (typeof next !== "object" || next === null) continue;
    for (const child of Object.values(next)) {
      open.push(child);
      if (open.length > limit) return limit + 1;
    }
  }
  return count;
}

function findingsOf({ errors }: ValidateFunction): readonly ParamsFinding[] {
  // The finding about the name itself says more.
  const own = (errors ?? []).filter(({ keyword }) => keyword !== "propertyNames");
  return own.slice(0, maxFindings).map(finding);
}

function finding(error: ErrorObject): ParamsFinding {
  switch (error.keyword) {
    case "additionalProperties":
      return {
        path: `${error.instancePath}/${pointer(String(error.params["additionalProperty"]))}`,
        message: "is not a known parameter",
      };
    case "required":
      return {
        path: `${error.instancePath}/${pointer(String(error.params["missingProperty"]))}`,
        message: "is required",
      };
    case "enum":
      return {
        path: error.instancePath,
        message: `must be one of ${(error.params["allowedValues"] as readonly unknown[]).map((value) => JSON.stringify(value)).join(", ")}`,
      };
    case "pattern": {
      const words = patternWords[String(error.params["pattern"])];
      const must = words === undefined ? (error.message ?? "is not valid") : `must ${words}`;
      return {
        path: error.instancePath,
        message: error.propertyName === undefined ? must : `has a wrong name: a name ${must}`,
      };
    }
    default:
      return { path: error.instancePath, message: error.message ?? "is not valid" };
  }
}

/** RFC 6901. */
function pointer(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
