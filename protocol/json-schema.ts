import type * as TypeBox from "typebox";

/** The builders that the wire needs, with typebox's types, from which `Static` derives ours. */
type Builders = Pick<
  typeof TypeBox.Type,
  | "Array"
  | "Boolean"
  | "Enum"
  | "Integer"
  | "Literal"
  | "Null"
  | "Number"
  | "Object"
  | "Optional"
  | "Record"
  | "String"
  | "Union"
  | "Unknown"
>;

/** The JSON Schema keywords in the schemas of the wire and the configuration. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  /** The value that applies if the field is absent. */
  readonly default?: unknown;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly JsonSchema[];
  readonly allOf?: readonly JsonSchema[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly patternProperties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean | JsonSchema;
  readonly propertyNames?: JsonSchema;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly items?: JsonSchema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
}

type Schema = Readonly<Record<string, unknown>>;

/** An array that is readonly in TypeScript. */
export function readonlyArray<S extends TypeBox.TSchema>(
  items: S,
  options?: TypeBox.TArrayOptions,
): TypeBox.TUnsafe<readonly TypeBox.Static<S>[]> {
  return Type.Array(items, options) as unknown as TypeBox.TUnsafe<readonly TypeBox.Static<S>[]>;
}

/** Marks an optional property for {@link Type}.Object; not part of the schema. */
const optional = "~optional";

/**
 * Builds plain JSON schemas, identical to typebox's: loading that library would cost every daemon and every client
 * about 8 MiB for a dozen functions.
 */
export const Type = {
  Array: (items: Schema, options?: Schema) => ({ type: "array", items, ...options }),
  Boolean: (options?: Schema) => ({ type: "boolean", ...options }),
  Enum: (values: readonly unknown[], options?: Schema) => ({ enum: [...values], ...options }),
  Integer: (options?: Schema) => ({ type: "integer", ...options }),
  Literal: (value: unknown, options?: Schema) => ({ type: typeof value, const: value, ...options }),
  Null: (options?: Schema) => ({ type: "null", ...options }),
  Number: (options?: Schema) => ({ type: "number", ...options }),
  Object: (properties: Readonly<Record<string, Schema>>, options?: Schema) => {
    const required = Object.entries(properties).flatMap(([name, schema]) => (optional in schema ? [] : [name]));
    return { type: "object", ...(required.length > 0 && { required }), properties, ...options };
  },
  Optional: (schema: Schema) => Object.defineProperty({ ...schema }, optional, { value: true }),
  Record: (_key: Schema, value: Schema, options?: Schema) => ({
    type: "object",
    patternProperties: { "^.*$": value },
    ...options,
  }),
  String: (options?: Schema) => ({ type: "string", ...options }),
  Union: (anyOf: readonly Schema[], options?: Schema) => ({ anyOf, ...options }),
  Unknown: (options?: Schema) => ({ ...options }),
} as unknown as Builders;
