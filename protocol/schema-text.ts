import type { TSchema } from "typebox";
import type { JsonSchema } from "./json-schema.ts";

export const fieldHead = ["field", "type", "required", "meaning"] as const;

/** Says schemas in words. Schemas that have a name are said by it, with a link to where they are explained. */
export class SchemaText {
  readonly #names: ReadonlyMap<string, string>;

  constructor(named: Readonly<Record<string, TSchema>>) {
    this.#names = new Map(Object.entries(named).map(([name, schema]) => [shapeOf(schema), name]));
  }

  /** A table of an object's fields; undefined if it has none. */
  fields(schema: TSchema): string | undefined {
    const rows = this.rows(schema);
    return rows.length === 0 ? undefined : table(fieldHead, rows);
  }

  /** An object's fields, with what {@link fieldHead} says in each. */
  rows(schema: TSchema): readonly (readonly string[])[] {
    const { properties = {}, required = [] } = schema as JsonSchema;
    return Object.entries(properties).map(([name, field]) => [
      `\`${name}\``,
      this.type(field),
      required.includes(name) ? "yes" : "no",
      [field.description, "default" in field ? `Default: ${code(field.default)}.` : ""].filter(Boolean).join(" "),
    ]);
  }

  type(schema: TSchema): string {
    const name = this.#names.get(shapeOf(schema));
    if (name !== undefined) return `[${name}](#${name.toLowerCase()})`;
    return this.#unnamed(schema as JsonSchema);
  }

  #unnamed(schema: JsonSchema): string {
    if (schema.const !== undefined) return code(schema.const);
    if (schema.enum !== undefined) return `one of ${schema.enum.map(code).join(", ")}`;
    if (schema.anyOf !== undefined) return schema.anyOf.map((option) => this.type(option)).join(" or ");
    switch (schema.type) {
      case "array":
        return this.#array(schema);
      case "string":
        return string(schema);
      case "integer":
        return integer(schema);
      case "object":
        return this.#object(schema);
      case undefined:
        return "any JSON";
      default:
        return schema.type;
    }
  }

  #array({ items = {}, minItems, maxItems }: JsonSchema): string {
    const bounds = maxItems === undefined ? "" : `, ${minItems ?? 0} to ${maxItems} of them`;
    const each = items.anyOf === undefined ? this.type(items) : `(${this.type(items)})`;
    return `array of ${each}${bounds}`;
  }

  #object({ properties = {}, patternProperties = {}, required = [] }: JsonSchema): string {
    const [values] = Object.values(patternProperties);
    if (values !== undefined) return `object whose values are ${this.type(values)}`;
    const needed = Object.entries(properties).filter(([name]) => required.includes(name));
    if (needed.length === 0) return "object";
    return `object with ${needed.map(([name, field]) => `\`${name}\` (${this.type(field)})`).join(", ")}`;
  }
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(" | ")} |`;
  return [line(head), `|${"---|".repeat(head.length)}`, ...rows.map(line)].join("\n");
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ").trim();
}

function code(value: unknown): string {
  return `\`${JSON.stringify(value)}\``;
}

function string({ pattern, minLength }: JsonSchema): string {
  if (pattern !== undefined) return `string matching \`${pattern}\``;
  return minLength === undefined ? "string" : "non-empty string";
}

function integer({ minimum, maximum }: JsonSchema): string {
  if (maximum !== undefined) return `integer from ${minimum ?? 0} to ${maximum}`;
  return minimum === undefined ? "integer" : `integer, ${minimum} or more`;
}

/** A schema without its own description and default: the same type may have others where it is used. */
export function shapeOf(schema: object): string {
  return JSON.stringify({ ...schema, description: undefined, default: undefined });
}
