import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Frame, gapFrame } from "../../server/frames/frame.ts";
import { mergeDeltas } from "../../server/frames/merge-deltas.ts";
import type { Unchecked } from "../helpers/unchecked.ts";

const sessionId = "s-1";

function frameOf(seq: number, event: object, generation = 1): Frame {
  const params = { sessionId, seq, at: seq * 10, generation, event };
  const bytes = Buffer.from(JSON.stringify({ jsonrpc: "2.0", method: "session/event", params }));
  return { bytes, sessionId, seq, isDelta: (event as { type: string }).type.endsWith("_update") };
}

function delta(seq: number, text: string, contentIndex = 0, type = "text_delta"): Frame {
  const usage = { output: seq };
  return frameOf(seq, { type: "message_update", usage, assistantMessageEvent: { type, contentIndex, delta: text } });
}

const paramsOf = ({ bytes }: Frame): Unchecked => JSON.parse(bytes.toString("utf8")).params;

describe("mergeDeltas", () => {
  test("does not change frames that only look like JSON", () => {
    const head = `{"jsonrpc":"2.0","method":"session/event","params":{"sessionId":"s-1","seq":5,"at":1,"generation":1,`;
    const bytes = Buffer.from(`${head}"event":{"type":"message_update","delta":oops}}}`);
    const broken: Frame = { bytes, sessionId, seq: 5, isDelta: true };
    expect(mergeDeltas([delta(4, "a"), broken, delta(6, "b")]).map(({ seq }) => seq)).toEqual([4, 5, 6]);
  });

  test("merges a block's consecutive deltas into one envelope: the newest record, with all of the text", () => {
    const [merged, ...others] = mergeDeltas([delta(4, "Hel"), delta(5, "lo "), delta(6, "you")]);
    expect(others).toEqual([]);
    expect(merged).toMatchObject({ sessionId, seq: 6, firstSeq: 4, isDelta: true });
    expect(paramsOf(merged as Frame)).toEqual({
      sessionId,
      seq: 6,
      firstSeq: 4,
      at: 60,
      generation: 1,
      event: {
        type: "message_update",
        usage: { output: 6 },
        assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: "Hello you" },
      },
    });
  });

  test.each([
    ["another block", [delta(1, "a", 0), delta(2, "b", 1)]],
    ["another kind of block", [delta(1, "a", 0), delta(2, "b", 0, "thinking_delta")]],
    ["a number between them", [delta(1, "a"), delta(3, "b")]],
    ["another child", [delta(1, "a"), { ...frameOf(2, paramsOf(delta(2, "b")).event, 2) }]],
    [
      "a gap between them",
      [delta(1, "a"), gapFrame(sessionId, { from: 2, to: 2, reason: "slow_reader" }), delta(3, "b")],
    ],
    ["the block's end between them", [delta(1, "a"), delta(2, "a", 0, "text_end"), delta(3, "b")]],
    [
      "updates of a tool",
      [frameOf(1, { type: "tool_execution_update" }), frameOf(2, { type: "tool_execution_update" })],
    ],
  ])("leaves apart what has %s", (_what, frames) => {
    const merged = mergeDeltas(frames);
    expect(merged).toHaveLength(frames.length);
    for (const [i, frame] of merged.entries()) expect(frame).toBe(frames[i]);
  });

  test("merges records whatever the order of their fields, and leaves an invalid newest one as it is", () => {
    const reordered = (seq: number, text: string): Frame =>
      frameOf(seq, {
        assistantMessageEvent: { delta: text, contentIndex: 0, type: "text_delta" },
        type: "message_update",
      });
    const frames = [delta(1, 'a"\\'), reordered(2, "b\\"), delta(3, '\\"\n'), reordered(4, "d"), delta(5, "e")];
    const bytes = frames[4]?.bytes as Buffer;
    const cut: Frame = { ...(frames[4] as Frame), bytes: bytes.subarray(0, -1) };
    const [merged, newest, ...others] = mergeDeltas([...frames.slice(0, 4), cut]);
    expect(others).toEqual([]);
    expect(newest).toBe(cut);
    expect(merged).toMatchObject({ seq: 4, firstSeq: 1 });
    expect(paramsOf(merged as Frame).event.assistantMessageEvent.delta).toBe('a"\\b\\\\"\nd');
  });

  test("merges wherever a record has the text, and no text with an invalid character", () => {
    const wide = (seq: number, text: string, digits: number): Frame =>
      frameOf(seq, {
        type: "message_update",
        usage: { output: 10 ** digits },
        assistantMessageEvent: { type: "text_delta", contentIndex: 0, delta: text },
      });
    const texts = ["é", "plain", "😀 ", "x".repeat(300), "", 'a "quote"', "\u0041", "end"];
    const merged = mergeDeltas(texts.map((text, i) => wide(i + 98, text, (i * 5) % 7)));
    expect(merged).toHaveLength(1);
    expect(paramsOf(merged[0] as Frame).event.assistantMessageEvent.delta).toBe(texts.join(""));
    const valid = delta(2, "b~");
    const invalid: Frame = {
      ...valid,
      bytes: Buffer.from(valid.bytes.toString("latin1").replace("~", "\t"), "latin1"),
    };
    expect(mergeDeltas([delta(1, "a"), invalid, delta(3, "c")]).map(({ seq }) => seq)).toEqual([1, 2, 3]);
  });

  test("joins the two halves of a character that were sent separately", () => {
    const [merged] = mergeDeltas([delta(1, "a\ud83d"), delta(2, "\ude00b")]);
    expect(paramsOf(merged as Frame).event.assistantMessageEvent.delta).toBe("a😀b");
  });

  test("keeps every number and all text of each block, however it is cut into calls", () => {
    const kinds = fc.array(fc.record({ kind: fc.nat({ max: 5 }), index: fc.nat({ max: 1 }), text: fc.string() }));
    fc.assert(
      fc.property(kinds, fc.nat({ max: 20 }), (records, cut) => {
        const frames = records.map(({ kind, index, text }, i) =>
          kind === 0 ? frameOf(i + 1, { type: "turn_start" }) : delta(i + 1, text, index),
        );
        const first = mergeDeltas(frames.slice(0, cut));
        const merged = mergeDeltas([...first, ...frames.slice(cut)]);
        let next = 1;
        for (const { seq, firstSeq = seq } of merged) {
          expect(firstSeq).toBe(next);
          next = seq + 1;
        }
        expect(next).toBe(frames.length + 1);
        const text = (all: readonly Frame[], index: number): string =>
          all
            .map((frame) => paramsOf(frame).event.assistantMessageEvent)
            .filter((update) => update?.contentIndex === index)
            .map((update) => update.delta)
            .join("");
        for (const index of [0, 1]) expect(text(merged, index)).toBe(text(frames, index));
        expect(merged).toEqual(mergeDeltas(frames));
      }),
      { numRuns: 200 },
    );
  });
});
