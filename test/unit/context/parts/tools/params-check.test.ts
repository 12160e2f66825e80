import { expect, test } from "vitest";
import { ParamsCheck, type ParamsVerdict } from "../../../../../context/parts/tools/params-check.ts";

const check = (schema: unknown, params: unknown): Promise<ParamsVerdict> => new ParamsCheck().check(schema, params);
const good = { findings: [] };

test("a fault is reported with its place in the params and in the schema", async () => {
  const item = { type: "object", properties: { kind: { enum: ["x", "y"] } }, additionalProperties: false };
  const schema = { type: "object", properties: { list: { type: "array", items: item } }, required: ["list", "n"] };
  expect(await check(schema, { list: [{ kind: "z", more: 1 }] })).toEqual({
    findings: [
      "params must have required property 'n' (#/required)",
      'params/list/0 must NOT have additional properties: "more" (#/properties/list/items/additionalProperties)',
      'params/list/0/kind must be equal to one of the allowed values: ["x","y"] (#/properties/list/items/properties/kind/enum)',
    ],
  });
  expect(await check(schema, { list: [{ kind: "x" }], n: null })).toEqual(good);
});

test("it is as lenient as pi, and does not change its input", async () => {
  const params = { n: "5", flag: "true" };
  expect(await check({ properties: { n: { type: "integer" }, flag: { type: "boolean" } } }, params)).toEqual(good);
  expect(params).toEqual({ n: "5", flag: "true" });
});

test("schemas of older and newer drafts are read, whatever version they claim", async () => {
  const older = { properties: { pair: { type: "array", items: [{ type: "string" }] } } };
  const newer = { properties: { pair: { type: "array", prefixItems: [{ type: "string" }] } } };
  for (const schema of [older, newer]) {
    for (const $schema of ["http://json-schema.org/draft-07/schema#", "https://no.such/draft"]) {
      const verdict = await check({ $schema, $id: "same", ...schema }, { pair: [{}] });
      expect(verdict).toEqual({ findings: [expect.stringMatching(/^params\/pair\/0 must be string/)] });
    }
  }
});

test("a long list of findings is shortened", async () => {
  const properties = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`p${n}`, { enum: ["x".repeat(999)] }]));
  const params = Object.fromEntries(Object.keys(properties).map((name) => [name, 1]));
  const verdict = await check({ properties }, params);
  const findings = "findings" in verdict ? verdict.findings : [];
  expect(findings).toHaveLength(8);
  for (const finding of findings) expect(finding.length).toBeLessThanOrEqual(300);
});

/** Doubles at each step: 2^40 ways to fail. */
function bomb(): object {
  const steps = Array.from({ length: 40 }, (_, n) => [
    `d${n}`,
    { anyOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
  ]);
  return { $defs: { ...Object.fromEntries(steps), d40: false }, $ref: "#/$defs/d0" };
}

function deep(): object {
  let schema: object = {};
  for (let depth = 0; depth < 10_000; depth += 1) schema = { not: schema };
  return schema;
}

function circular(): object {
  const schema: Record<string, unknown> = {};
  schema["not"] = schema;
  return schema;
}

test.each([
  ["a pattern that never finishes", { properties: { s: { pattern: "^(a+)+$" } } }],
  ["references that multiply", bomb()],
  ["an unknown type", { type: "nonsense" }],
  ["a reference to nowhere", { $ref: "#/nowhere" }],
  ["ten thousand levels", deep()],
  ["a circle", circular()],
  ["more than the size limit", { properties: { s: { description: "x".repeat(300_000) } } }],
  ["no schema", undefined],
])("%s leaves the params unchecked: pi has its own check", async (_case, schema) => {
  const verdict = await new ParamsCheck(250).check(schema, { s: `${"a".repeat(64)}b` });
  expect(verdict).toEqual({ unchecked: expect.any(String) });
});

test("after a schema that never finishes, others are checked as before", async () => {
  const checks = new ParamsCheck();
  const hostile = { properties: { s: { pattern: "^(a+)+$" } } };
  // A schema that never finishes uses its whole time limit.
  expect(await checks.check(hostile, { s: `${"a".repeat(64)}b` })).toHaveProperty("unchecked");
  expect(await checks.check(hostile, { s: "a" })).toEqual(good);
  expect(await checks.check({ required: ["a"] }, {})).toHaveProperty("findings.length", 1);
});
