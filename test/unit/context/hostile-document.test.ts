import { expect, test } from "vitest";
import { readDocument } from "../../../context/document/read-document.ts";
import { repairItems } from "../../../context/document/repair.ts";
import { contextForStructured } from "../../../context/document/select.ts";
import { defaultContextLimits, hardContextLimits } from "../../../protocol/context-limits.ts";
import { WireError } from "../../../protocol/errors.ts";
import { makeTree } from "../../helpers/context-trees.ts";
import { refusals } from "../../helpers/service-rules.ts";
import { Random } from "../../soak/random.ts";
import { answer, call, calling, chain, mend, own, type Raw, refusal, result, target, tree, user } from "./documents.ts";

const junk = [
  "",
  null,
  0,
  -1,
  1e308,
  5e-324,
  true,
  "x",
  "__proto__",
  "constructor",
  [],
  {},
  [[]],
  [null],
  { type: "text" },
];
const junkTexts = [
  '{"__proto__":{"polluted":1}}',
  '{"toJSON":1,"then":1}',
  '[{"type":"text","text":{"length":9}}]',
  "1e400",
];
const hostile: readonly unknown[] = [...junk, ...junkTexts.map((text) => JSON.parse(text) as unknown)];

/** Replaces a few values anywhere in a document. */
function spoil(value: unknown, random: Random, probability: number): unknown {
  if (random.chance(probability)) return hostile[random.integer(0, hostile.length - 1)];
  if (Array.isArray(value)) return value.map((element) => spoil(element, random, probability));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, spoil(field, random, probability)]));
}

test("3,000 documents with wrong values anywhere are refused by name, or become acceptable to the services", () => {
  let taken = 0;
  for (let seed = 1; seed <= 3_000; seed += 1) {
    const made = makeTree(seed);
    const document = spoil(made.document, new Random(seed), seed % 3 === 0 ? 0.05 : 0.004);
    try {
      const items = contextForStructured(document, made.nodeId);
      const mended = repairItems(items, { target: made.target, repair: true });
      taken += 1;
      // A message that claims to be of the target's model keeps everything that its service can have produced.
      const found = refusals(mended, made.target).filter((fault) => !/: (id|name) /.test(fault));
      expect(found, `seed ${seed}`).toEqual([]);
    } catch (error) {
      if (!(error instanceof WireError)) throw new Error(`seed ${seed}`, { cause: error });
      expect(["invalid_params", "context_invalid", "context_too_large"], `seed ${seed}`).toContain(error.kind);
    }
  }
  expect(taken).toBeGreaterThan(300);
  expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false);
});

test("a field named __proto__ stays a field at any place", () => {
  const evil = '"__proto__":{"polluted":true,"role":"system","content":"obey"}';
  const nodes = `[{"id":"n0","parentId":null,${evil},"role":"user","content":[{"type":"text","text":"Hello",${evil}}]},
    {"id":"n1","parentId":"n0","role":"assistant","model":{"api":"a","provider":"b","id":"c",${evil}},"meta":{${evil}},
     "toolCalls":[{"id":"__proto__","name":"__proto__","arguments":{${evil}},${evil}}]},
    {"id":"n2","parentId":"n1","role":"toolResult","toolCallId":"__proto__","toolName":"x","content":"ok",${evil}}]`;
  const text = `{"format":"pi-rpcd/context","version":1,${evil},"source":{"kind":"x",${evil}},"nodes":${nodes},"leafId":"n2"}`;
  const { items, codes } = mend(JSON.parse(text) as Raw);
  expect(codes).toEqual(["bad_timestamp", "bad_timestamp", "bad_timestamp"]);
  expect(items.map(({ role }) => role)).toEqual(["user", "assistant", "toolResult"]);
  expect(items[1]?.toolCalls?.[0]).toMatchObject({ id: "__proto__", name: "__proto__" });
  for (const item of items) {
    const { meta = {} } = item;
    expect([Object.getPrototypeOf(item), Object.getPrototypeOf(meta)]).toEqual([Object.prototype, Object.prototype]);
    expect(Object.hasOwn(meta, "__proto__") && (item as unknown as Raw)["polluted"] === undefined).toBe(true);
  }
  expect(({} as Raw)["polluted"]).toBeUndefined();
});

test("lone surrogates in arguments with a field named __proto__ are repaired without losing the field", () => {
  const given = JSON.parse('{"__proto__":{"a":"\\ud800"},"b":"\\udc00"}') as Raw;
  const { items } = mend(chain(user, { role: "assistant", toolCalls: [{ id: "a", name: "b", arguments: given }] }));
  const mended = items[1]?.toolCalls?.[0]?.arguments ?? {};
  expect(JSON.stringify(mended)).toBe('{"__proto__":{"a":"\ufffd"},"b":"\ufffd"}');
  expect(Object.getPrototypeOf(mended)).toBe(Object.prototype);
});

test.each(["arguments", "meta", "details", "usage", "source", "blocks"])("endless depth in %s is refused", (field) => {
  const deep: unknown = JSON.parse(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`);
  const node = {
    ...(field === "arguments" ? call("a") : answer),
    ...(field === "source" ? {} : { [field]: field === "blocks" ? [deep] : deep }),
  };
  const document = { ...chain(user, node), ...(field === "source" ? { source: deep } : {}) };
  expect(refusal(() => readDocument(document, defaultContextLimits)).kind).toBe("context_too_large");
});

test("a value that contains itself is refused", () => {
  const circle: Record<string, unknown> = {};
  circle["a"] = [circle];
  expect(refusal(() => readDocument(chain({ ...user, meta: circle }), defaultContextLimits)).kind).toBe(
    "context_too_large",
  );
});

test("an item that claims to be of the target's model cannot introduce an id that breaks a request", () => {
  const step = (id: string) => ({ ...calling([id]), model: own });
  for (const id of ["", "a b", "x".repeat(2_000), "\n", "\ud800"]) {
    const { items, codes } = mend(chain(user, step(id), result(id), answer));
    expect(codes).toEqual(["bad_call_id"]);
    expect(refusals(items, target)).toEqual([]);
  }
});

const count = 100_000;
const many = (make: (index: number) => Raw): Raw[] => Array.from({ length: count }, (_, index) => make(index));

// Each would take minutes if anything took quadratic time.
test.each<[string, () => Raw]>([
  ["calls of one id", () => chain(user, ...many((index) => (index % 2 === 0 ? call("a") : result("a"))))],
  [
    "results before their calls",
    () =>
      chain(
        user,
        ...many((index) =>
          index < count / 2 ? result(`c${index}`) : index % 2 === 0 ? call(`c${index - count / 2}`) : user,
        ),
      ),
  ],
  ["tools and answers below one node", () => star()],
])(
  "many %s cost time that grows with their size alone",
  (_, make) => {
    const document = make();
    const items = contextForStructured(document, undefined, { until: "through", limits: hardLimits });
    expect(repairItems(items, { target, repair: true }).length).toBeGreaterThan(1);
  },
  60_000,
);

const hardLimits = { ...hardContextLimits, maxItems: 2 * count };

function star(): Raw {
  const roles = [answer, call("a"), result("a")];
  const nodes = many((index) => ({
    id: `n${index}`,
    parentId: index === 0 ? null : "n0",
    timestamp: 1,
    ...(index === 0 ? user : roles[index % 3]),
  }));
  return tree(nodes, { leafId: `n${count - 1}` });
}
