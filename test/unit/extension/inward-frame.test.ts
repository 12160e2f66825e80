import { Ajv } from "ajv";
import fc from "fast-check";
import { expect, test } from "vitest";
import { FrameError, parseInwardFrame, pushError } from "../../../extension/link/inward-frame.ts";
import type { JsonSchema } from "../../../protocol/json-schema.ts";
import { CARRIER_TYPE } from "../../../protocol/link.ts";
import { inwardFrames } from "../../../protocol/link-inward.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { broken, fitting } from "../../helpers/schema-values.ts";
import { heldPush } from "./pushes.ts";

const image = { type: "image", data: "aGk=", mimeType: "image/png" };

const usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: {} };
const messages = [
  { role: "user", content: [{ type: "text", text: "Look:" }, image], timestamp: 1 },
  {
    role: "assistant",
    content: [
      { type: "thinking", thinking: "Hm.", thinkingSignature: "s" },
      { type: "text", text: "I look." },
      { type: "toolCall", id: "c1", name: "read", arguments: { path: "a" } },
    ],
    api: "openai-completions",
    provider: "scripted",
    model: "scripted",
    usage,
    stopReason: "toolUse",
    timestamp: 2,
  },
  { role: "toolResult", toolCallId: "c1", toolName: "read", content: [], isError: false, timestamp: 3 },
  { role: "custom", customType: "pi-rpcd.event", content: "Event: x", display: true, details: {}, timestamp: 4 },
  { role: "compactionSummary", summary: "Before.", tokensBefore: 1, timestamp: 5 },
  { role: "branchSummary", summary: "Aside.", fromId: "a1", timestamp: 6 },
  { role: "bashExecution", command: "ls", output: "", exitCode: 0, cancelled: false, truncated: false, timestamp: 7 },
] as const;
const context = { hash: "0".repeat(64), messages, budget: 1_000, afterCompaction: "trim" } as const;

test.for([
  { kind: "ping", rid: "r" },
  { kind: "notify", rid: "r", text: "Oh." },
  { kind: "carry", rid: "r" },
  { kind: "carry", rid: "r", deliveryId: "d1-delivery" },
  { kind: "drained", rid: "r" },
  { kind: "beforePrompt", rid: "r" },
  { kind: "release", rid: "r", deliveryIds: ["d1", "a.b_c:d-e"] },
  { kind: "hold", rid: "r", pushes: [] },
  {
    kind: "hold",
    rid: "r",
    pushes: [heldPush("d1", { details: { any: [1] } }), heldPush("d2", { deliverAs: "nextTurn", onAbort: "drop" })],
  },
  { kind: "hold", rid: "r", pushes: [{ ...heldPush("d1"), content: [{ type: "text", text: "Look:" }, image] }] },
  { kind: "file", rid: "r", path: "/tmp/frame", bytes: 10, sha256: "0".repeat(64) },
  { kind: "entries", rid: "r" },
  { kind: "entries", rid: "r", since: "a1b2c3d4", session: "0199c2" },
  { kind: "watch", rid: "r", provider: "messages", bodyPrefix: "/tmp/body-", maxBodyBytes: 0 },
  { kind: "context", rid: "r", context: { ...context, messages: [] } },
  { kind: "context", rid: "r", context: { ...context, instructions: "Be brief.", budget: null } },
])("takes %j", (frame) => {
  expect(parseInwardFrame(JSON.stringify(frame))).toEqual(frame);
});

test.for([
  "",
  "null",
  "7",
  '"text"',
  "[]",
  "{}",
  '{"kind":"ping"}',
  '{"kind":"ping","rid":""}',
  `{"kind":"ping","rid":"${"r".repeat(129)}"}`,
])("refuses %j, which cannot be answered", (text) => {
  expect(() => parseInwardFrame(text)).toThrow(expect.objectContaining({ name: "FrameError", rid: undefined }));
});

const pushes: readonly object[] = [
  { deliveryId: "" },
  { deliveryId: "a b" },
  { customType: "" },
  { customType: CARRIER_TYPE },
  { content: "" },
  { content: [] },
  { content: [{ type: "text", text: "" }] },
  { content: [{ type: "video", data: "aGk=" }] },
  { content: [{ ...image, mimeType: "text/html" }] },
  { content: [{ ...image, data: "" }] },
  { content: Array.from({ length: 257 }, () => ({ type: "text", text: "x" })) },
  { display: "yes" },
  { details: [] },
  { details: null },
  { deliverAs: "soon" },
  { triggerTurn: 1 },
  { onAbort: undefined },
];

test.for(pushes)("refuses a push with %j", (fields) => {
  expect(pushError(JSON.parse(JSON.stringify({ ...heldPush("bad"), ...fields })))).toEqual(expect.any(String));
  expect(pushError(heldPush("good"))).toBeUndefined();
});

test.for([
  { kind: "explode" },
  { kind: "__proto__" },
  { kind: "toString" },
  { kind: ["ping"] },
  { kind: "hold" },
  { kind: "hold", pushes: { length: 1 } },
  { kind: "release" },
  { kind: "release", deliveryIds: "d1" },
  { kind: "release", deliveryIds: [null] },
  { kind: "context" },
  { kind: "context", context: { ...context, hash: "0" } },
  { kind: "context", context: { ...context, messages: undefined } },
  { kind: "context", context: { ...context, instructions: 1 } },
  { kind: "context", context: { ...context, budget: 0 } },
  { kind: "context", context: { ...context, budget: undefined } },
  { kind: "context", context: { ...context, afterCompaction: "burn" } },
  { kind: "context", context: { ...context, messages: [null] } },
  { kind: "context", context: { ...context, messages: [{ role: "system", content: "Obey.", timestamp: 1 }] } },
  { kind: "context", context: { ...context, messages: [{ ...messages[0], content: "text" }] } },
  { kind: "context", context: { ...context, messages: [{ ...messages[0], timestamp: undefined }] } },
  { kind: "context", context: { ...context, messages: [{ ...messages[1], usage: undefined }] } },
  { kind: "context", context: { ...context, messages: [{ ...messages[1], stopReason: "error" }] } },
  {
    kind: "context",
    context: { ...context, messages: [{ ...messages[1], content: [{ type: "toolCall", id: "c1" }] }] },
  },
  { kind: "context", context: { ...context, messages: [{ ...messages[2], toolCallId: undefined }] } },
  { kind: "context", context: { ...context, messages: [{ ...messages[3], display: 1 }] } },
  { kind: "context", context: { ...context, messages: [{ ...messages[4], summary: 1 }] } },
  { kind: "context", context: { ...context, messages: [{ ...messages[5], fromId: 1 }] } },
  { kind: "context", context: { ...context, messages: [{ ...messages[6], output: null }] } },
  { kind: "file", path: "", bytes: 1, sha256: "0".repeat(64) },
  { kind: "file", path: "/a\0b", bytes: 1, sha256: "0".repeat(64) },
  { kind: "file", path: "/a", bytes: -1, sha256: "0".repeat(64) },
  { kind: "file", path: "/a", bytes: 1.5, sha256: "0".repeat(64) },
  { kind: "file", path: "/a", bytes: 1, sha256: "0".repeat(63) },
])("refuses %j", (fields) => {
  expect(() => parseInwardFrame(JSON.stringify({ ...fields, rid: "r" }))).toThrow(FrameError);
});

test.for([
  { provider: "all" },
  { provider: undefined },
  { provider: ["off"] },
  { bodyPrefix: "body-" },
  { bodyPrefix: "/tmp/\0" },
  { bodyPrefix: 1 },
  { maxBodyBytes: -1 },
  { maxBodyBytes: 1.5 },
  { maxBodyBytes: "1" },
])("refuses to watch with %j", (wrong) => {
  const frame = { kind: "watch", rid: "r", provider: "off", bodyPrefix: "/tmp/body-", maxBodyBytes: 1, ...wrong };
  expect(() => parseInwardFrame(JSON.stringify(frame))).toThrow(expect.objectContaining({ rid: "r" }));
});

const ajv = new Ajv({ strict: false });
const validators = new Map(Object.entries(inwardFrames).map(([kind, schema]) => [kind, ajv.compile(schema)]));

function isValid(frame: unknown): boolean {
  const kind = isRecord(frame) ? frame["kind"] : undefined;
  return typeof kind === "string" && validators.get(kind)?.(frame) === true;
}

/** Whether the helper acts on a frame and all its pushes. */
function isTaken(text: string): boolean {
  try {
    const frame = parseInwardFrame(text);
    return frame.kind !== "hold" || frame.pushes.every((push) => pushError(push) === undefined);
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(FrameError);
    return false;
  }
}

test.for(Object.entries(inwardFrames))("checks a %s frame by hand as its schema does", ([, schema]) => {
  const frames = fitting(schema as JsonSchema) as fc.Arbitrary<Record<string, unknown>>;
  let refused = 0;
  fc.assert(
    fc.property(frames, (frame) => {
      const text = JSON.stringify(frame);
      expect(isValid(JSON.parse(text)), text).toBe(true);
      expect(isTaken(text), text).toBe(true);
    }),
    { numRuns: 200 },
  );
  fc.assert(
    fc.property(broken(frames), (frame) => {
      const text = JSON.stringify(frame);
      const isGood = isValid(JSON.parse(text));
      expect(isTaken(text), text).toBe(isGood);
      if (!isGood) refused += 1;
    }),
    { numRuns: 1_000 },
  );
  expect(refused).toBeGreaterThan(0);
});
