import { describe, expect, test } from "vitest";
import type { PiEvent } from "../../../server/pi/records.ts";
import { type RecordDiagnostic, Router } from "../../../server/pi/router.ts";

interface Routed {
  readonly events: { readonly text: string; readonly parsed: boolean }[];
  readonly diagnostics: RecordDiagnostic[];
  readonly responses: unknown[];
  readonly statuses: string[];
  readonly unread: string[];
}

function route(...records: (string | Buffer)[]): Routed {
  const routed: Routed = { events: [], diagnostics: [], responses: [], statuses: [], unread: [] };
  const router = new Router({
    response: (response) => {
      routed.responses.push(response);
      return response.id === "d1";
    },
    status: (key, text) => {
      if (key !== "link") return false;
      routed.statuses.push(text);
      return true;
    },
    event: (record: Buffer, event: PiEvent | undefined) =>
      routed.events.push({ text: record.toString("utf8"), parsed: event !== undefined }),
    unread: (head) => routed.unread.push(head),
    diagnostic: (diagnostic) => routed.diagnostics.push(diagnostic),
  });
  for (const record of records) router.route(Buffer.from(record as string));
  return routed;
}

describe("Router", () => {
  test("forwards high-rate records unparsed and all others parsed, both with pi's own bytes", () => {
    const delta =
      '{"type":"message_update","usage":{ },"assistantMessageEvent":{"type":"text_delta","delta":"a\u2028"}}';
    const end = '{"type":"message_end" , "message":{}}';
    expect(route(delta, end).events).toEqual([
      { text: delta, parsed: false },
      { text: end, parsed: true },
    ]);
  });

  test("forwards long records without needed fields unparsed, and not as deltas", () => {
    const deltas: boolean[] = [];
    const router = new Router({
      response: () => true,
      status: () => false,
      event: (_, event, isDelta) => deltas.push(isDelta && event === undefined),
      unread: () => {},
      diagnostic: () => {},
    });
    for (const type of ["turn_end", "message_start", "tool_execution_start", "tool_execution_end", "message_update"])
      router.route(Buffer.from(`{"type":"${type}","message":{}}`));
    expect(deltas).toEqual([false, false, false, false, true]);
    const routed = route('{"type":"turn_end","message":{}}', '{"type":"turn_end","a":1},"seq":1}');
    expect(routed.events.map(({ parsed }) => parsed)).toEqual([false]);
    expect(routed.diagnostics.map(({ kind }) => kind)).toEqual(["unparsable"]);
  });

  test("recognises a high-rate type only as a whole word at the start of a complete object", () => {
    const cases = ['{"type":"message_updates"}', '{"usage":1,"type":"message_update"}', '{"type": "message_update"}'];
    expect(route(...cases).events.every(({ parsed }) => parsed)).toBe(true);
    expect(route('{"type":"message_update","usage":').diagnostics[0]?.kind).toBe("unparsable");
  });

  test("delivers responses to pending commands, and reports unexpected ones", () => {
    const routed = route(
      '{"id":"d1","type":"response","command":"x","success":true}',
      '{"type":"response","command":"parse","success":false}',
    );
    expect(routed.responses).toHaveLength(2);
    expect(routed.diagnostics.map(({ kind }) => kind)).toEqual(["unknown_response"]);
    expect(routed.events).toEqual([]);
  });

  test("does not parse a record that is nested too deeply, and rejects its command if it is a response", () => {
    const deep = "[".repeat(600) + "]".repeat(600);
    const routed = route(`{"id":"d1","type":"response","data":${deep}}`, `{"type":"message_end","message":${deep}}`);
    expect([routed.responses, routed.events]).toEqual([[], []]);
    expect(routed.diagnostics.map(({ kind }) => kind)).toEqual(["unparsable", "unparsable"]);
    expect(routed.unread[0]).toMatch(/^\{"id":"d1","type":"response"/);
  });

  test("removes the link's status records from the events, and no others", () => {
    const status = (key: string) =>
      JSON.stringify({ type: "extension_ui_request", id: "u", method: "setStatus", statusKey: key, statusText: "t" });
    const routed = route(status("link"), status("other"));
    expect(routed.statuses).toEqual(["t"]);
    expect(routed.events.map(({ text }) => text)).toEqual([status("other")]);
  });

  test.each([
    ["{oops", "unparsable"],
    ["\u0000", "unparsable"],
    ["\ufeff{}", "unparsable"],
    ['{"type":7}', "unparsable"],
    ["{}", "unparsable"],
    ["null", "not_an_object"],
    ["[1]", "not_an_object"],
    ['"text"', "not_an_object"],
    ["7", "not_an_object"],
  ] as const)("reports %j as %s, and forwards it to no receiver", (record, kind) => {
    const routed = route(record);
    expect(routed.diagnostics).toEqual([expect.objectContaining({ kind, bytes: Buffer.byteLength(record) })]);
    expect(routed.events).toEqual([]);
  });

  test("replaces invalid UTF-8, reports it, and forwards the record", () => {
    const routed = route(
      Buffer.concat([Buffer.from('{"type":"message_update","delta":"'), Buffer.from([0xff, 0xc3]), Buffer.from('"}')]),
    );
    expect(routed.diagnostics.map(({ kind }) => kind)).toEqual(["invalid_utf8"]);
    expect(routed.events[0]?.text).toBe('{"type":"message_update","delta":"\ufffd\ufffd"}');
  });
});
