import { expect, test } from "vitest";
import { FrameError, parseInwardFrame, whatIsWrongWith } from "../../../extension/link/inward-frame.ts";
import { CARRIER_TYPE } from "../../../protocol/link.ts";
import { heldPush } from "./pushes.ts";

const image = { type: "image", data: "aGk=", mimeType: "image/png" };

test.for([
  { kind: "ping", rid: "r" },
  { kind: "carry", rid: "r" },
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
  expect(whatIsWrongWith(JSON.parse(JSON.stringify({ ...heldPush("bad"), ...fields })))).toEqual(expect.any(String));
  expect(whatIsWrongWith(heldPush("good"))).toBeUndefined();
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
