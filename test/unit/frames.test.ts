import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type Frame, gapFrame } from "../../server/frames/frame.ts";
import { mergeDeltas } from "../../server/frames/merge-deltas.ts";

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

// biome-ignore lint/suspicious/noExplicitAny: looks into notifications of every shape
const paramsOf = ({ bytes }: Frame): any => JSON.parse(bytes.toString("utf8")).params;

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
