import { expect, test } from "vitest";
import { failure, recordIn, success, unreadable } from "../../../../cli/rpc/pi-record.ts";

test("responses have pi's fields in pi's order, and an id as it was given", () => {
  expect(success("a", "abort")).toBe('{"id":"a","type":"response","command":"abort","success":true}');
  expect(success(undefined, "bash", { output: "" })).toBe(
    '{"type":"response","command":"bash","success":true,"data":{"output":""}}',
  );
  expect(success(null, "cycle_model", null)).toBe(
    '{"id":null,"type":"response","command":"cycle_model","success":true,"data":null}',
  );
  expect(failure({ n: 1 }, "prompt", "no")).toBe(
    '{"id":{"n":1},"type":"response","command":"prompt","success":false,"error":"no"}',
  );
  expect(unreadable(new SyntaxError("Unexpected end of JSON input"))).toBe(
    '{"type":"response","command":"parse","success":false,"error":"Failed to parse command: Unexpected end of JSON input"}',
  );
});

test("pi's record is cut out of its frame byte for byte", () => {
  const record = '{"type":"x","n":1.50,"event":"\\u00e9","a":{"event":{}}}';
  const frame = `{"jsonrpc":"2.0","method":"session/event","params":{"sessionId":"s","seq":1,"at":1,"generation":1,"event":${record}}}`;
  expect(recordIn(frame)).toBe(record);
});
