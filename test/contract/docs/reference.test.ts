import { describe, expect, test } from "vitest";
import { errorCatalogue } from "../../../protocol/errors.ts";
import type { JsonSchema } from "../../../protocol/json-schema.ts";
import { methods } from "../../../protocol/methods.ts";
import { namedObjects, namedTypes } from "../../../protocol/named-schemas.ts";
import { notifications } from "../../../protocol/notifications.ts";
import { piCommands } from "../../../protocol/pi-commands.ts";
import { TypeText } from "../../../protocol/type-text.ts";
import { protocolLimits } from "../../../server/edge/protocol-limits.ts";
import { referenceHeaders, referencePage } from "../../../server/edge/reference-page.ts";

const page = referencePage("1.2.3");
const named = { ...namedTypes, ...namedObjects };
const text = new TypeText(named);
const ids = Array.from(page.matchAll(/ id="([^"]+)"/g), ([, id = ""]) => id);
/** The part of the page about each method, notification and type, by its title. */
const sections = new Map(
  page
    .split(/(?=<h[23] id=")/)
    .map((section) => [/^<h3[^>]*><a[^>]*>([^<]+)</.exec(section)?.[1] ?? "", section] as const),
);

describe("the reference page", () => {
  test("runs no script and loads nothing, as its content policy requires", () => {
    expect(/<script|<img|<link|<iframe|@import|url\(|\son\w+=|="https?:|javascript:/i.exec(page)).toBeNull();
    const policy = "default-src 'none'; style-src 'sha256-";
    expect(page).toContain(`<meta http-equiv="Content-Security-Policy" content="${policy}`);
    expect(referenceHeaders["content-security-policy"].startsWith(policy)).toBe(true);
  });

  test("has no duplicate anchor and no broken link", () => {
    expect(ids.filter((id, at) => ids.indexOf(id) !== at)).toEqual([]);
    const links = Array.from(page.matchAll(/href="#([^"]+)"/g), ([, id = ""]) => id);
    expect(links.filter((link) => !ids.includes(link))).toEqual([]);
  });

  test("has a section for each method, notification and type", () => {
    const names = [methods, notifications, named].flatMap((table) => Object.keys(table));
    expect(names.filter((name) => !sections.has(name))).toEqual([]);
  });

  test("has every error, limit and command of pi", () => {
    const anchors = [
      ...Object.keys(errorCatalogue).map((name) => `error-${name}`),
      ...protocolLimits.map(({ name }) => `limit-${name}`),
    ];
    expect(ids).toEqual(expect.arrayContaining(anchors));
    expect(Object.keys(piCommands).filter((name) => !page.includes(`<td><code>${name}</code></td>`))).toEqual([]);
  });
});

/** The schema of each type, and of params and results, by the title of its section. */
const schemas = [
  ...Object.entries(methods).flatMap(([name, { params, result }]) => [
    [name, params] as const,
    [name, result] as const,
  ]),
  ...Object.entries(notifications).map(([name, { params }]) => [name, params] as const),
  ...Object.entries(named),
].filter(([name, schema]) => name in named || text.nameOf(schema) === undefined);

/** The parts of a schema, down to types with sections of their own. */
function partsOf(schema: JsonSchema): readonly JsonSchema[] {
  const { properties = {}, patternProperties = {}, items, anyOf = [] } = schema;
  const inner = [
    ...Object.values(properties),
    ...Object.values(patternProperties),
    ...anyOf,
    ...(items ? [items] : []),
  ];
  return [schema, ...inner.filter((part) => text.nameOf(part) === undefined).flatMap(partsOf)];
}

/** What the page lacks: `wanted` returns the text that a section must have for a part of a schema. */
function missing(wanted: (part: JsonSchema) => readonly (string | RegExp)[]): readonly string[] {
  return schemas.flatMap(([name, schema]) => {
    const section = sections.get(name) ?? "";
    const all = partsOf(schema as JsonSchema).flatMap(wanted);
    return all
      .filter((one) => (typeof one === "string" ? !section.includes(one) : !one.test(section)))
      .map((one) => `${name}: ${one}`);
  });
}

describe("the reference page has at every depth", () => {
  const fieldsOf = ({ properties = {} }: JsonSchema) => Object.entries(properties);

  test("every field", () => {
    const cell = (field: string): RegExp => new RegExp(`<td><code>([^<]*\\.)?${field}\\??</code></td>`);
    expect(schemas.flatMap(([, schema]) => partsOf(schema as JsonSchema)).flatMap(fieldsOf).length).toBeGreaterThan(
      900,
    );
    expect(missing((part) => fieldsOf(part).map(([field]) => cell(field)))).toEqual([]);
  });

  test("its description", () => {
    const words = (text = ""): readonly string[] => text.split(/`[^`]*`|[&<>"]/);
    expect(missing((part) => fieldsOf(part).flatMap(([, { description }]) => words(description)))).toEqual([]);
  });

  test("its default and its possible values", () => {
    const literal = (value: unknown): string => JSON.stringify(value).replaceAll('"', "&quot;");
    const defaults = (part: JsonSchema) =>
      fieldsOf(part).flatMap(([, field]) => ("default" in field ? [field.default] : []));
    const values = (part: JsonSchema) => part.enum ?? (part.const === undefined ? [] : [part.const]);
    expect(missing((part) => [...defaults(part), ...values(part)].map(literal))).toEqual([]);
  });
});
