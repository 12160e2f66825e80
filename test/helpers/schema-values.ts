import fc from "fast-check";
import type { JsonSchema } from "../../protocol/json-schema.ts";

type Fields = Record<string, unknown>;

/** Such values with one change: a value as an attacker would choose it, or a name more or fewer. */
export function broken(values: fc.Arbitrary<Fields>): fc.Arbitrary<unknown> {
  return fc.tuple(values, fc.nat(), hostileValue, fc.nat()).map(([fields, at, hostile, how]) => {
    // A later change would otherwise reach into a value that all share.
    const value = structuredClone(hostile);
    const places = placesOf(fields);
    const place = places[at % places.length];
    if (place === undefined)
      return how % 3 === 0 ? { ...fields, [`x${JSON.stringify(value)}`.slice(0, 1_000)]: value } : value;
    const [owner, key] = place;
    if (how % 8 === 0) delete owner[key];
    else if (how % 8 === 1) owner[`${key}\0`] = value;
    else owner[key] = value;
    return fields;
  });
}

const long = "a".repeat(20_000);

/** Values that careless code accepts as a path, an option, an environment, or a number. */
const hostileValue: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(
    ...["", " ", "-", "--", "--help", "-e", "--extension=/tmp/x.js", "--inspect=0.0.0.0:1", "@/etc/passwd"],
    ...[
      "../../../../etc/passwd",
      "/etc/passwd",
      "/",
      "..",
      ".",
      "~",
      "~root",
      "file:///etc/passwd",
      "/proc/self/environ",
      "/dev/zero",
    ],
    ...["a\0b", "\0", "/tmp\0/x", "a\nb", "a\r\nX: y", "\u001b[2J", "\u2028", "\ufeff", "\ud800", "é".normalize("NFD")],
    ...[
      "__proto__",
      "constructor",
      "prototype",
      "toString",
      "$(id)",
      "`id`",
      "; id",
      "%00",
      "%2e%2e%2f",
      "C:\\x",
      "NODE_OPTIONS",
    ],
    ...[long, `/${long}`, "/a".repeat(5_000), "😀".repeat(5_000), "[".repeat(5_000)],
  ),
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -0,
    -1,
    0.5,
    1e308,
    -1e308,
    5e-324,
    2 ** 31,
    2 ** 32,
    2 ** 53,
    2 ** 63,
    1e21,
  ),
  fc.constantFrom<unknown>([], {}, [[]], [null], Array(1_000).fill("a"), Array(1_000).fill({}), { length: -1 }),
  fc.constantFrom<unknown>(
    { NODE_OPTIONS: "--require=/tmp/x" },
    { "a=b": "c" },
    { "": "" },
    { [long]: 1 },
    { constructor: "a", toString: 1 },
  ),
  fc.constantFrom<unknown>({ type: "text", text: 1 }, { type: "image", data: "!", mimeType: "../x" }, { type: long }),
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ unit: "binary" }),
);

/** Every place in a value that can be changed, as its container and its key there. */
function placesOf(value: unknown, depth = 0): (readonly [Fields, string])[] {
  if (typeof value !== "object" || value === null || depth > 4) return [];
  return Object.keys(value).flatMap((key) => [
    [value as Fields, key] as const,
    ...placesOf((value as Fields)[key], depth + 1),
  ]);
}

/** Values that a schema allows. */
export function fitting(schema: JsonSchema): fc.Arbitrary<unknown> {
  if ("const" in schema) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
  if (schema.anyOf !== undefined) return fc.oneof(...schema.anyOf.map(fitting));
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "string":
      return textOf(schema);
    case "integer":
      return fc.integer({ min: schema.minimum ?? -1_000, max: schema.maximum ?? 2 ** 31 });
    case "number":
      return fc.double({
        min: schema.exclusiveMinimum ?? schema.minimum ?? -1_000,
        minExcluded: schema.exclusiveMinimum !== undefined,
        max: schema.maximum ?? 1_000,
        noNaN: true,
      });
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array": {
      const { minItems = 0, maxItems = 3, items = {}, uniqueItems } = schema;
      const bounds = { minLength: minItems, maxLength: Math.max(minItems, Math.min(maxItems, 3)) };
      return uniqueItems === true ? fc.uniqueArray(fitting(items), bounds) : fc.array(fitting(items), bounds);
    }
    case "object":
      return objectOf(schema);
    default:
      return fc.jsonValue({ maxDepth: 2 }).filter((value) => !JSON.stringify(value).includes("__proto__"));
  }
}

/** For a required field without a schema. Small, because a configuration has many. */
const anything = fc.constantFrom<unknown>(null, false, 0, "", [], {});

function objectOf(schema: JsonSchema): fc.Arbitrary<Fields> {
  const {
    properties = {},
    required = [],
    patternProperties = {},
    additionalProperties,
    propertyNames,
    minProperties = 0,
  } = schema;
  const free = required.filter((name) => !Object.hasOwn(properties, name));
  const named = [
    ...free.map((name) => [name, anything] as const),
    ...Object.entries(properties).map(([name, of]) => [name, fitting(of)] as const),
  ];
  const own = fc.record(Object.fromEntries(named), {
    requiredKeys: [...required],
    noNullPrototype: true,
  });
  const open = typeof additionalProperties === "object" ? [["^[a-z]{1,5}$", additionalProperties] as const] : [];
  const others = [...Object.entries(patternProperties), ...open].map(([pattern, of]) =>
    fc.dictionary(matching(propertyNames?.pattern ?? pattern), fitting(of), {
      minKeys: minProperties,
      maxKeys: 3,
      noNullPrototype: true,
    }),
  );
  return fc.tuple(own, ...others).map((parts): Fields => Object.assign({}, ...parts));
}

function textOf({ pattern, minLength = 0, maxLength = 30 }: JsonSchema): fc.Arbitrary<string> {
  if (pattern !== undefined) return matching(pattern).filter((text) => text.length >= minLength);
  return fc.string({ minLength, maxLength: Math.max(minLength, Math.min(maxLength, 30)) });
}

function matching(pattern: string): fc.Arbitrary<string> {
  const whole = new RegExp(pattern, "u");
  // fast-check does not support lookaheads.
  const known = pattern.replaceAll(/\(\?[=!](?:[^()]|\([^()]*\))*\)/g, "");
  return fc.stringMatching(new RegExp(known, "u")).filter((text) => whole.test(text));
}
