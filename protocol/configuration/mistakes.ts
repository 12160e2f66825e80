import type { JsonSchema } from "../json-schema.ts";
import { isRecord } from "../objects.ts";
import { nearest } from "./nearest.ts";

/** Path of keys and list indexes. */
export type Place = readonly (string | number)[];

/** A mistake at one place of a configuration. */
export interface Mistake {
  readonly place: Place;
  /** Without the place, and without a full stop: `0.3 is below 0.5`. */
  readonly why: string;
}

/** Maximum number of mistakes reported. */
const maxMistakes = 32;
/** Maximum length of untrusted input shown in a message. */
const maxShown = 64;

/** Description of texts that match a pattern, such as `an absolute path`. */
export type PatternWords = Readonly<Record<string, string>>;

/** Formats a mistake as a sentence or question: `optimisation.compaction.thresholdPercent: 0.3 is below 0.5.` */
export function inWords({ place, why }: Mistake): string {
  return `${placeName(place)}: ${why}${why.endsWith("?") ? "" : "."}`;
}

/** Formats a place: `optimisation.contextFiles.sections[2].path`; keys other than plain words are in brackets. */
export function placeName(place: Place): string {
  return place
    .map((key, at) => {
      if (typeof key === "number") return `[${key}]`;
      if (/^[A-Za-z_][A-Za-z0-9_]{0,63}$/.test(key)) return at === 0 ? key : `.${key}`;
      return `[${shown(key)}]`;
    })
    .join("");
}

/** Formats a place as a JSON pointer. */
export function pointerTo(place: Place): string {
  return place.map((key) => `/${String(key).slice(0, 256).replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
}

/**
 * Finds at most 32 mistakes in a configuration, named by its keys. Supports our own schemas of objects, tables by name,
 * lists, numbers, texts and choices. Surplus entries of a table are not checked.
 */
export function schemaMistakes(schema: object, value: unknown, place: Place, words: PatternWords = {}): Mistake[] {
  const found: Mistake[] = [];
  look(schema, value, place, { found, words });
  return found;
}

interface SchemaCheck {
  readonly found: Mistake[];
  readonly words: PatternWords;
}

function look(schema: JsonSchema, value: unknown, place: Place, checking: SchemaCheck): void {
  if (checking.found.length >= maxMistakes) return;
  const say = (why: string): void => void checking.found.push({ place, why });
  if (schema.anyOf !== undefined) checkChoice(schema.anyOf, value, place, checking);
  else if (schema.enum !== undefined) {
    if (!schema.enum.includes(value)) say(`${shown(value)} is not one of ${schema.enum.map(shown).join(", ")}`);
  } else if (!hasType(schema, value)) say(`${shown(value)} is not ${typeName(schema)}`);
  else if (Array.isArray(value)) checkList(schema, value, place, checking);
  else if (isRecord(value)) checkObject(schema, value, place, checking);
  else if (typeof value === "number") checkNumber(schema, value, say);
  else if (typeof value === "string") checkText(schema, value, say, checking.words);
}

/** Checks the choice of the value's type; if there is none, names all choices. */
function checkChoice(choices: readonly JsonSchema[], value: unknown, place: Place, checking: SchemaCheck): void {
  if (choices.some((choice) => schemaMistakes(choice, value, place).length === 0)) return;
  const fitting = choices.find((choice) => choice.enum === undefined && hasType(choice, value));
  if (fitting !== undefined) look(fitting, value, place, checking);
  else checking.found.push({ place, why: `${shown(value)} is not ${choices.map(typeName).join(" or ")}` });
}

function checkObject(
  schema: JsonSchema,
  value: Readonly<Record<string, unknown>>,
  place: Place,
  checking: SchemaCheck,
): void {
  const { found, words } = checking;
  const keys = Object.keys(value);
  const { properties = {}, required = [], maxProperties = Number.POSITIVE_INFINITY } = schema;
  if (keys.length > maxProperties) {
    found.push({ place, why: `${keys.length} entries exceed the limit of ${maxProperties}` });
    return;
  }
  const table = Object.values(schema.patternProperties ?? {})[0];
  for (const key of keys) {
    if (found.length >= maxMistakes) return;
    const at = [...place, key];
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (known !== undefined) look(known, value[key], at, checking);
    else if (table === undefined) found.push({ place: at, why: unknownKey(key, properties) });
    else {
      const { pattern } = schema.propertyNames ?? {};
      if (pattern === undefined || new RegExp(pattern, "u").test(key)) look(table, value[key], at, checking);
      else found.push({ place: at, why: `${shown(key)} is not ${words[pattern] ?? "an allowed name"}` });
    }
  }
  for (const key of required)
    if (!Object.hasOwn(value, key)) found.push({ place: [...place, key], why: "the value is missing" });
}

/** Suggests the intended key: a similar one, or the same name in another part. */
function unknownKey(key: string, properties: Readonly<Record<string, JsonSchema>>): string {
  const parts = Object.entries(properties).filter(([, { properties: inner = {} }]) => Object.hasOwn(inner, key));
  const [elsewhere] = parts;
  if (elsewhere !== undefined) return `unknown key here; the nearest is ${elsewhere[0]}.${key}`;
  const known = Object.keys(properties);
  const near = nearest(key, known);
  return near === undefined ? `unknown key; known keys: ${known.join(", ")}` : `unknown key; the nearest is ${near}`;
}

function checkList(schema: JsonSchema, value: readonly unknown[], place: Place, checking: SchemaCheck): void {
  const { maxItems = Number.POSITIVE_INFINITY, minItems = 0, items } = schema;
  if (value.length > maxItems || value.length < minItems) {
    const [bound, word] = value.length > maxItems ? [maxItems, "more"] : [minItems, "fewer"];
    checking.found.push({ place, why: `${value.length} entries are ${word} than ${bound}` });
  } else if (items !== undefined) for (const [at, item] of value.entries()) look(items, item, [...place, at], checking);
}

function checkNumber(schema: JsonSchema, value: number, say: (why: string) => void): void {
  const { minimum, exclusiveMinimum, maximum } = schema;
  if (minimum !== undefined && value < minimum) say(`${value} is below ${minimum}`);
  else if (exclusiveMinimum !== undefined && value <= exclusiveMinimum)
    say(`${value} is not above ${exclusiveMinimum}`);
  else if (maximum !== undefined && value > maximum) say(`${value} is above ${maximum}`);
}

function checkText(schema: JsonSchema, value: string, say: (why: string) => void, words: PatternWords): void {
  const { minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern } = schema;
  // A character has at most two units. Longer texts are not counted, because untrusted text can have any length.
  const isFarTooLong = value.length > 2 * maxLength;
  const length = value.length > maxLength && !isFarTooLong ? [...value].length : value.length;
  if (isFarTooLong) say(`a text of ${length} units is longer than ${maxLength} characters`);
  else if (length > maxLength) say(`${length} characters exceed the limit of ${maxLength}`);
  else if (length < minLength) say("the text is empty");
  else if (pattern !== undefined && !new RegExp(pattern, "u").test(value))
    say(`${shown(value)} is not ${words[pattern] ?? "valid"}`);
}

function hasType({ type, enum: words }: JsonSchema, value: unknown): boolean {
  if (words !== undefined) return words.includes(value);
  switch (type) {
    case "object":
      return isRecord(value);
    case "array":
      return Array.isArray(value);
    case "integer":
      return Number.isInteger(value);
    case "number":
      return Number.isFinite(value);
    case "null":
      return value === null;
    default:
      return typeof value === type;
  }
}

const typeNames: Readonly<Record<string, string>> = {
  object: "an object",
  array: "a list",
  integer: "a whole number",
  number: "a number",
  string: "a text",
  boolean: "true or false",
  null: "null",
};

function typeName({ type = "", enum: words }: JsonSchema): string {
  return words === undefined ? (typeNames[type] ?? "valid") : words.map(shown).join(" or ");
}

/** Formats a value as JSON, if it is short. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (isRecord(value)) return "an object";
  const text = JSON.stringify(typeof value === "string" ? value.slice(0, maxShown) : value) ?? "nothing";
  return typeof value === "string" && value.length > maxShown ? `${text.slice(0, -1)}…"` : text;
}
