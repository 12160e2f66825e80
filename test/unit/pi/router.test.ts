import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isLarge } from "../../../server/frames/large-record.ts";
import type { PiEvent } from "../../../server/pi/records.ts";
import { type RecordDiagnostic, Router } from "../../../server/pi/router.ts";

interface Routed {
  readonly events: { readonly text: string; readonly parsed: boolean }[];
  readonly values: (PiEvent | undefined)[];
  readonly diagnostics: RecordDiagnostic[];
  readonly responses: unknown[];
  readonly statuses: string[];
  readonly unread: string[];
  readonly staged: string[];
}

function route(...records: (string | Buffer)[]): Routed {
  const { routed, router } = routing();
  for (const record of records) router.route(Buffer.from(record as string));
  return routed;
}

/** Routes a record in parts that end at these places. */
async function routeLarge(record: Buffer, places: readonly number[] = []): Promise<Routed> {
  const { routed, router } = routing();
  const ends = [...places.map((place) => place % (record.length + 1)).sort((a, b) => a - b), record.length];
  const parts = ends.map((end, i) => record.subarray(ends[i - 1] ?? 0, end));
  await router.routeLarge(parts, record.length);
  return routed;
}

function routing(): { readonly routed: Routed; readonly router: Router } {
  const routed: Routed = {
    events: [],
    values: [],
    diagnostics: [],
    responses: [],
    statuses: [],
    unread: [],
    staged: [],
  };
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
    event: (record: Buffer, event: PiEvent | undefined) => {
      routed.events.push({ text: record.toString("utf8"), parsed: event !== undefined });
      routed.values.push(event);
    },
    unread: (head) => routed.unread.push(head),
    diagnostic: (diagnostic) => routed.diagnostics.push(diagnostic),
    stage: async (record) => void routed.staged.push(record.toString("utf8")),
  });
  return { routed, router };
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
      stage: () => undefined,
    });
    for (const type of ["turn_end", "message_start", "tool_execution_start", "tool_execution_end", "message_update"])
      router.route(Buffer.from(`{"type":"${type}","message":{}}`));
    expect(deltas).toEqual([false, false, false, false, true]);
    const routed = route('{"type":"turn_end","message":{}}', '{"type":"turn_end","a":1},"seq":1}');
    expect(routed.events.map(({ parsed }) => parsed)).toEqual([false]);
    expect(routed.diagnostics.map(({ kind }) => kind)).toEqual(["unparsable"]);
  });

  test("reads of the end of a run only whether pi tries again, if pi wrote that last", async () => {
    const ends = [
      '{"type":"agent_end","messages":[{"a":[1]}],"willRetry":true}',
      '{"type":"agent_end","messages":[],"willRetry":false}',
      '{"type":"agent_end","messages":[],"willRetry":true,"more":1}',
      '{"type":"agent_end","messages":[1]}',
    ];
    const expected = [
      { type: "agent_end", willRetry: true },
      { type: "agent_end", willRetry: false },
      { type: "agent_end", messages: [], willRetry: true, more: 1 },
      { type: "agent_end", messages: [1] },
    ];
    expect(route(...ends).values).toEqual(expected);
    for (const [i, end] of ends.entries()) expect((await routeLarge(Buffer.from(end))).values).toEqual([expected[i]]);
    const forged = route('{"type":"agent_end","messages":[]},"seq":[1],"willRetry":true}');
    expect([forged.events, forged.diagnostics[0]?.kind]).toEqual([[], "unparsable"]);
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

describe("a large record", () => {
  const head = fc.constantFrom(
    '{"type":"message_update","text":"',
    '{"type":"tool_execution_end","text":"',
    '{"type":"message_end","text":"',
    '{"id":"d1","type":"response","text":"',
  );
  const byte = fc.oneof(fc.constantFrom(0x22, 0x5c, 0x7b, 0x7d, 0xff, 0xc3, 0xe2, 0x80, 0xf0, 0x61), fc.nat(255));
  const text = fc.oneof(
    fc.string({ unit: "binary" }).map((value) => Buffer.from(JSON.stringify(value).slice(1, -1))),
    fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    fc.array(byte).map((bytes) => Buffer.from(bytes)),
  );

  test("is routed like a small one, wherever it is cut", async () => {
    await fc.assert(
      fc.asyncProperty(head, text, fc.array(fc.nat(), { maxLength: 12 }), async (first, value, places) => {
        const record = Buffer.concat([Buffer.from(first), value, Buffer.from('"}')]);
        const { staged: _, ...routed } = await routeLarge(record, places);
        const { staged: _none, ...expected } = route(record);
        expect(routed).toEqual(expected);
      }),
      { numRuns: 1_000 },
    );
  });

  test("is staged before it is reported, unless it is a delta or invalid", async () => {
    const record = (type: string, end = "}"): Buffer =>
      Buffer.from(`{"type":"${type}","text":"${"é".repeat(100_000)}"${end}`);
    expect((await routeLarge(record("turn_end"))).staged).toEqual([record("turn_end").toString("utf8")]);
    expect((await routeLarge(record("message_update"))).staged).toEqual([]);
    const forged = await routeLarge(record("turn_end", '},"seq":1}'));
    expect([forged.staged, forged.events, forged.diagnostics[0]?.kind]).toEqual([[], [], "unparsable"]);
  });

  test.each([
    ["in the middle of a step", 10],
    ["at the end of a step", 65_536 - '{"type":"turn_end","text":"'.length - 1],
  ])("with invalid UTF-8 %s is repaired like a small one", async (_, before) => {
    const value = Buffer.concat([Buffer.from("x".repeat(before)), Buffer.from([0xe2, 0x82, 0xff, 0xf0, 0x9f])]);
    const more = Buffer.from("é\u{1f600}".repeat(40_000));
    const record = Buffer.concat([Buffer.from('{"type":"turn_end","text":"'), value, more, Buffer.from('"}')]);
    const routed = await routeLarge(record);
    expect(routed.events[0]?.text).toBe(record.toString("utf8"));
    expect(routed.diagnostics.map(({ kind }) => kind)).toEqual(["invalid_utf8"]);
  });

  test("is in memory with space for its notification", async () => {
    let isInSpace = false;
    const router = new Router({
      response: () => true,
      status: () => false,
      event: (record) => {
        isInSpace = isLarge(record);
      },
      unread: () => {},
      diagnostic: () => {},
      stage: () => undefined,
    });
    await router.routeLarge([Buffer.from('{"type":"turn_'), Buffer.from('end"}')], 19);
    expect(isInSpace).toBe(true);
  });
});
