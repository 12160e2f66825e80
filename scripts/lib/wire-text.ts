import { deliveryStates } from "../../protocol/delivery-progress.ts";
import { errorCatalogue } from "../../protocol/errors.ts";
import { fixedRoutes } from "../../protocol/fixed-routes.ts";
import { errorsOf } from "../../protocol/method-errors.ts";
import { type HttpRoute, type MethodRow, type MethodTable, routesOf } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";
import { namedObjects, namedTypes } from "../../protocol/named-schemas.ts";
import { type NotificationRow, notifications } from "../../protocol/notifications.ts";
import { defaultOptimisation } from "../../protocol/optimisation/config.ts";
import { type PiCommandRoute, piCommands } from "../../protocol/pi-commands.ts";
import { defaultPruning } from "../../protocol/pruning/config.ts";
import * as wire from "../../protocol/wire.ts";
import { protocolLimits } from "./protocol-limits.ts";

// The wire as one text without prose: protocol/wire.txt. It has no order of its own, so that moving a declaration in the code
// does not change it.

type Schema = object;
type Schemas = Readonly<Record<string, Schema>>;
type Keywords = Readonly<Record<string, unknown>>;

const head = `# The wire of pi-rpcd: every method, notification, type, error, path and limit, without prose.
# Written by \`npm run schema\` from the tables in protocol/; do not edit. A difference here is a change of the protocol.
#
# method(params) -> result | capability; facts | HTTP | errors besides those of every method
# field?: may be absent    = value: default    T[1..8]: array with its bounds    {[name]: T}: object with any names
# string 1..64 /pattern/    int 0..10    json: any JSON    {a: T, ...}: further fields are allowed`;

/** The whole of protocol/wire.txt. */
export function wireText(table: MethodTable = methods): string {
  const named = { ...namedTypes, ...namedObjects };
  const text = new TypeText(named);
  const rows = Object.entries(table);
  const all = rows.map(([, row]) => new Set<string>(errorsOf(row)));
  const ofEvery = Object.keys(errorCatalogue).filter((name) => all.every((errors) => errors.has(name)));
  return [
    head,
    section(
      "constants",
      Object.entries(wire).map(([name, value]) => `${name} = ${JSON.stringify(value)}`),
    ),
    section("methods", [...rows.map(([name, row]) => methodLine(name, row, text, ofEvery))]),
    section("errors of every method", ofEvery),
    section(
      "notifications",
      Object.entries<NotificationRow>(notifications).map(
        ([name, { params, since }]) => `${name}${text.params(params)} | since ${since}`,
      ),
    ),
    section(
      "types",
      Object.entries(named).map(([name, schema]) => `${name} = ${text.body(schema)}`),
    ),
    section("defaults of options", [
      ...defaults("optimisation", defaultOptimisation),
      ...defaults("pruning", defaultPruning),
    ]),
    section(
      "errors",
      Object.entries(errorCatalogue).map(
        ([name, { code, httpStatus, retryable }]) => `${name} ${code} ${httpStatus}${retryable ? " retryable" : ""}`,
      ),
    ),
    section(
      "delivery states",
      Object.entries(deliveryStates).map(([state, { next }]) =>
        next.length === 0 ? `${state}: the end` : `${state} -> ${next.toSorted().join(" ")}`,
      ),
    ),
    section(
      "HTTP paths of no method",
      fixedRoutes.map(
        ({ verb, path, answers, isOpen }) => `${path} ${verb} -> ${answers}${isOpen === true ? "; no token" : ""}`,
      ),
    ),
    section("commands of pi", Object.entries<PiCommandRoute>(piCommands).map(commandLine)),
    section(
      "limits",
      protocolLimits.map(({ name, value }) => `${name} = ${value}`),
    ),
    "",
  ].join("\n");
}

function section(title: string, lines: readonly string[]): string {
  return ["", `## ${title}`, ...lines.toSorted()].join("\n");
}

function methodLine(name: string, row: MethodRow, text: TypeText, ofEvery: readonly string[]): string {
  const { params, result, scope, asleep, capability, reads, needs = [], since, http } = row;
  const facts = [
    capability,
    ...needs
      .map(
        ({ param, value, capability: needed }) => `${param}${value === undefined ? "" : `=${value}`} needs ${needed}`,
      )
      .toSorted(),
    ...(reads === true ? ["reads"] : []),
    ...(scope === "none" ? [] : [`queue of the ${scope}`]),
    ...(asleep === undefined ? [] : [`without pi: ${asleep}`]),
    `since ${since}`,
  ];
  const paths = "none" in http ? ["no HTTP"] : routesOf(row).map(routeText);
  const errors = errorsOf(row).filter((error) => !ofEvery.includes(error));
  return [
    `${name}${text.params(params)} -> ${text.type(result)}`,
    facts.join("; "),
    paths.join(", "),
    ...(errors.length === 0 ? [] : [errors.toSorted().join(" ")]),
  ].join(" | ");
}

function routeText({ verb, path, ifQuery, stream, isFormer }: HttpRoute & { readonly isFormer: boolean }): string {
  const query = ifQuery === undefined ? "" : `?${ifQuery}`;
  return `${verb} ${path}${query}${stream === true ? " as events" : ""}${isFormer ? " (former)" : ""}`;
}

function commandLine([name, { method, asItIs, setting }]: readonly [string, PiCommandRoute]): string {
  const byCommand = asItIs ? (setting === undefined ? "yes" : "with confirmShared") : "no";
  return `${name} -> ${method ?? "none"}; session/command: ${byCommand}`;
}

function defaults(path: string, value: unknown): string[] {
  const isTable = typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
  if (!isTable) return [`${path} = ${JSON.stringify(value)}`];
  return Object.entries(value).flatMap(([name, inner]) => defaults(`${path}.${name}`, inner));
}

/** Writes schemas in a notation close to TypeScript's. Fields and alternatives are sorted. */
class TypeText {
  readonly #names: ReadonlyMap<string, string>;

  constructor(named: Schemas) {
    const names = Object.entries(named).toSorted(([a], [b]) => (a < b ? 1 : -1));
    this.#names = new Map(names.map(([name, schema]) => [shapeOf(schema), name]));
  }

  /** Of a schema, or the name that it has. */
  type(schema: Schema): string {
    return this.#names.get(shapeOf(schema)) ?? this.body(schema);
  }

  params(schema: Schema): string {
    const said = this.type(schema);
    return said.startsWith("{") ? `(${said.slice(1, -1)})` : `(${said})`;
  }

  /** Of a schema itself, also where it has a name. Throws for a keyword that it does not know, rather than leave it out. */
  body(schema: Schema): string {
    const { description: _prose, default: _value, type, ...bounds } = schema as Keywords;
    const { text, used } = this.#parts(type, bounds);
    const unknown = Object.keys(bounds).filter((key) => !used.includes(key));
    if (unknown.length > 0) throw new Error(`No notation for ${unknown.join(", ")} in ${JSON.stringify(schema)}`);
    return text;
  }

  #parts(type: unknown, schema: Keywords): { readonly text: string; readonly used: readonly string[] } {
    if ("const" in schema) return { text: JSON.stringify(schema["const"]), used: ["const"] };
    if ("enum" in schema)
      return { text: alternatives(schema["enum"], (value) => JSON.stringify(value)), used: ["enum"] };
    if ("anyOf" in schema)
      return { text: alternatives(schema["anyOf"], (option) => this.type(option as Schema)), used: ["anyOf"] };
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
    const each = this.type(items as Schema);
    const bounds = range(minItems, maxItems);
    return `${each.includes(" ") && !each.startsWith("{") ? `(${each})` : each}[${bounds}${uniqueItems === true ? " unique" : ""}]`;
  }

  #record({ patternProperties, propertyNames, minProperties, maxProperties }: Keywords): string {
    const entries = Object.entries(patternProperties as Schemas);
    const [[pattern, values] = ["", {}]] = entries;
    if (entries.length !== 1 || pattern !== "^.*$")
      throw new Error(`No notation for ${JSON.stringify(patternProperties)}`);
    const name = propertyNames === undefined ? "name" : string(propertyNames as Keywords).replace("string ", "");
    const bounds = range(minProperties, maxProperties);
    return `{[${name}]: ${this.type(values)}${bounds === "" ? "" : `, ${bounds} of them`}}`;
  }

  #object({ properties = {}, required = [], additionalProperties }: Keywords): string {
    const fields = Object.entries(properties as Schemas).map(([name, schema]) => {
      const mark = (required as readonly string[]).includes(name) ? "" : "?";
      const value = "default" in schema ? ` = ${JSON.stringify(schema.default)}` : "";
      return `${name}${mark}: ${this.type(schema)}${value}`;
    });
    if (additionalProperties !== undefined && typeof additionalProperties !== "boolean")
      throw new Error(`No notation for ${JSON.stringify(additionalProperties)}`);
    const isOpen = additionalProperties !== false;
    return `{${[...fields.toSorted(), ...(isOpen ? ["..."] : [])].join(", ")}}`;
  }
}

/** A schema without prose and without the value where it is absent, which is said with the field. */
function shapeOf(schema: Schema): string {
  return JSON.stringify({ ...schema, default: undefined }, (key, value: unknown) =>
    key === "description" && typeof value === "string" ? undefined : value,
  );
}

function alternatives(options: unknown, text: (option: unknown) => string): string {
  return (options as readonly unknown[]).map(text).toSorted().join(" | ");
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
