import type { JsonSchema } from "./json-schema.ts";

type Keywords = Readonly<Record<string, unknown>>;

export interface TypeTextOptions {
  /** How a named type is written. Default: its name. */
  readonly name?: (name: string) => string;
  /** Whether fields and alternatives are sorted, so that their order in the code makes no difference. Default: false. */
  readonly isSorted?: boolean;
  /**
   * Whether an object is written as just `object`, because {@link TypeText.fields} lists its fields. Default: false.
   */
  readonly isOutline?: boolean;
}

/** A field of an object, or of an object inside it. */
export interface Field {
  /** `blocks[].id`: of each item of an array. `tools.*.keep`: of each value of an object with any names. */
  readonly path: string;
  readonly type: string;
  readonly isOptional: boolean;
  /** The value if the field is absent, as JSON. */
  readonly default: string | undefined;
  readonly description: string;
}

/**
 * Writes JSON schemas in a notation close to TypeScript's, with all their bounds. Throws for an unknown keyword
 * instead of omitting it.
 */
export class TypeText {
  readonly #names: ReadonlyMap<string, string>;
  readonly #options: TypeTextOptions;

  /** If two types have the same schema, the alphabetically first name is used. */
  constructor(named: Readonly<Record<string, object>>, options: TypeTextOptions = {}) {
    const names = Object.entries(named).toSorted(([a], [b]) => (a < b ? 1 : -1));
    this.#names = new Map(names.map(([name, schema]) => [structureOf(schema), name]));
    this.#options = options;
  }

  /** The name of a schema; undefined if it has none. */
  nameOf(schema: object): string | undefined {
    return this.#names.get(structureOf(schema));
  }

  /** A schema by its name, or its {@link body}. */
  type(schema: object): string {
    const name = this.nameOf(schema);
    if (name === undefined) return this.body(schema);
    return this.#options.name === undefined ? name : this.#options.name(name);
  }

  /** A schema itself, even if it has a name. */
  body(schema: object): string {
    const { description: _prose, default: _value, type, ...bounds } = schema as Keywords;
    const { text, used } = this.#parts(type, bounds);
    const unknown = Object.keys(bounds).filter((key) => !used.includes(key));
    if (unknown.length > 0) throw new Error(`No notation for ${unknown.join(", ")} in ${JSON.stringify(schema)}`);
    return text;
  }

  /** The fields of an object, including those of unnamed objects inside it. */
  fields(schema: object): readonly Field[] {
    return this.#fields(schema, "");
  }

  #fields(schema: JsonSchema & { readonly additionalProperties?: unknown }, path: string): readonly Field[] {
    if (path !== "" && this.nameOf(schema) !== undefined) return [];
    const { properties, patternProperties, items, anyOf = [], required = [] } = schema;
    if (properties === undefined)
      return [
        ...(items === undefined ? [] : this.#fields(items, `${path}[]`)),
        ...Object.values(patternProperties ?? {}).flatMap((values) => this.#fields(values, below(path, "*"))),
        ...anyOf.flatMap((option) => this.#fields(option, path)),
      ];
    const fields = Object.entries(properties).flatMap(([name, field]) => [
      {
        path: below(path, name),
        type: this.type(field),
        isOptional: !required.includes(name),
        default: "default" in field ? JSON.stringify(field.default) : undefined,
        description: field.description ?? "",
      },
      ...this.#fields(field, below(path, name)),
    ]);
    return schema.additionalProperties === false ? fields : [...fields, further(path)];
  }

  #parts(type: unknown, schema: Keywords): { readonly text: string; readonly used: readonly string[] } {
    if ("const" in schema) return { text: JSON.stringify(schema["const"]), used: ["const"] };
    if ("enum" in schema)
      return { text: this.#alternatives(schema["enum"], (value) => JSON.stringify(value)), used: ["enum"] };
    if ("anyOf" in schema)
      return { text: this.#alternatives(schema["anyOf"], (option) => this.type(option as object)), used: ["anyOf"] };
    switch (type) {
      case "array":
        return { text: this.#array(schema), used: ["items", "minItems", "maxItems", "uniqueItems"] };
      case "object":
        return "patternProperties" in schema
          ? {
              text: this.#record(schema),
              used: ["patternProperties", "propertyNames", "minProperties", "maxProperties"],
            }
          : { text: this.#object(schema), used: ["properties", "required", "additionalProperties"] };
      case "integer":
      case "number":
        return { text: number(type, schema), used: ["minimum", "exclusiveMinimum", "maximum"] };
      case "string":
        return { text: string(schema), used: ["minLength", "maxLength", "pattern"] };
      case "boolean":
      case "null":
        return { text: type, used: [] };
      case undefined:
        return { text: "json", used: [] };
      default:
        throw new Error(`No notation for the type ${JSON.stringify(type)}`);
    }
  }

  #array({ items = {}, minItems, maxItems, uniqueItems }: Keywords): string {
    const each = this.type(items as object);
    const isObject = (items as JsonSchema).type === "object";
    const bounds = range(minItems, maxItems);
    const unique = uniqueItems === true ? " unique" : "";
    return `${each.includes(" ") && !isObject ? `(${each})` : each}[${bounds}${unique}]`;
  }

  #record({ patternProperties, propertyNames, minProperties, maxProperties }: Keywords): string {
    const entries = Object.entries(patternProperties as Readonly<Record<string, object>>);
    const [[pattern, values] = ["", {}]] = entries;
    if (entries.length !== 1 || pattern !== "^.*$")
      throw new Error(`No notation for ${JSON.stringify(patternProperties)}`);
    const name = propertyNames === undefined ? "name" : string(propertyNames as Keywords).replace("string ", "");
    const bounds = range(minProperties, maxProperties);
    return `{[${name}]: ${this.type(values)}${bounds === "" ? "" : `, ${bounds} of them`}}`;
  }

  #object({ properties = {}, required = [], additionalProperties }: Keywords): string {
    if (additionalProperties !== undefined && typeof additionalProperties !== "boolean")
      throw new Error(`No notation for ${JSON.stringify(additionalProperties)}`);
    if (this.#options.isOutline === true) return "object";
    const fields = Object.entries(properties as Readonly<Record<string, JsonSchema>>).map(([name, schema]) => {
      const mark = (required as readonly string[]).includes(name) ? "" : "?";
      const value = "default" in schema ? ` = ${JSON.stringify(schema.default)}` : "";
      return `${name}${mark}: ${this.type(schema)}${value}`;
    });
    const rest = additionalProperties === false ? [] : ["..."];
    return `{${[...this.#inOrder(fields), ...rest].join(", ")}}`;
  }

  #alternatives(options: unknown, text: (option: unknown) => string): string {
    return this.#inOrder((options as readonly unknown[]).map(text)).join(" | ");
  }

  #inOrder(texts: readonly string[]): readonly string[] {
    return this.#options.isSorted === true ? texts.toSorted() : texts;
  }
}

/** A schema without prose and without its default, which may differ where the same type is used. */
function structureOf(schema: object): string {
  return JSON.stringify({ ...schema, default: undefined }, (key, value: unknown) =>
    key === "description" && typeof value === "string" ? undefined : value,
  );
}

function below(path: string, name: string): string {
  return path === "" ? name : `${path}.${name}`;
}

function further(path: string): Field {
  return {
    path: below(path, "…"),
    type: "json",
    isOptional: true,
    default: undefined,
    description: "Further fields are allowed.",
  };
}

function number(type: "integer" | "number", { minimum, exclusiveMinimum, maximum }: Keywords): string {
  const name = type === "integer" ? "int" : "number";
  const bounds =
    exclusiveMinimum === undefined ? range(minimum, maximum) : `>${exclusiveMinimum}${range(undefined, maximum)}`;
  return bounds === "" ? name : `${name} ${bounds}`;
}

function string({ minLength, maxLength, pattern }: Keywords): string {
  const bounds = range(minLength, maxLength);
  return ["string", ...(bounds === "" ? [] : [bounds]), ...(pattern === undefined ? [] : [`/${pattern}/`])].join(" ");
}

function range(least: unknown, most: unknown): string {
  return least === undefined && most === undefined ? "" : `${least ?? ""}..${most ?? ""}`;
}
