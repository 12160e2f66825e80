import fc from "fast-check";
import { expect, test } from "vitest";
import { DeltaText } from "../../../../cli/rpc/delta-text.ts";

type PiEvent = Readonly<Record<string, unknown>>;

const update = (type: string, contentIndex: number, fields: PiEvent = {}): PiEvent => ({
  type: "message_update",
  assistantMessageEvent: { type, contentIndex, ...fields },
});

/** The events of a message with these blocks, each in pieces. */
function message(
  blocks: readonly { readonly kind: "text" | "thinking"; readonly pieces: readonly string[] }[],
): PiEvent[] {
  const streamed = blocks.flatMap(({ kind, pieces }, index) => [
    update(`${kind}_start`, index),
    ...pieces.map((delta) => update(`${kind}_delta`, index, { delta })),
    update(`${kind}_end`, index, { content: pieces.join("") }),
  ]);
  const content = blocks.map(({ kind, pieces }) => ({ type: kind, [kind]: pieces.join("") }));
  return [{ type: "message_start" }, ...streamed, { type: "message_end", message: { role: "assistant", content } }];
}

/** What a front end gets of these events; `undefined` is a gap. */
function written(events: readonly (PiEvent | undefined)[]): PiEvent[] {
  const text = new DeltaText();
  return events.flatMap((event) => {
    if (event === undefined) {
      text.lose();
      return [];
    }
    return [...text.before(event), ...(text.passes(event) ? [event] : [])];
  });
}

/** What a front end shows that appends deltas. */
function shown(events: readonly PiEvent[]): Map<number, string> {
  const blocks = new Map<number, string>();
  for (const { assistantMessageEvent: step } of events as readonly { assistantMessageEvent?: PiEvent }[]) {
    if (step === undefined || !String(step["type"]).endsWith("_delta")) continue;
    const index = step["contentIndex"] as number;
    blocks.set(index, (blocks.get(index) ?? "") + String(step["delta"]));
  }
  return blocks;
}

test("events without a gap pass as they are", () => {
  const events = message([
    { kind: "thinking", pieces: ["a", "b"] },
    { kind: "text", pieces: ["c"] },
  ]);
  expect(written(events)).toEqual(events);
});

test("after a gap, the rest of a block comes as one delta before its end", () => {
  const [start, begin, one, , three, end, over] = message([{ kind: "text", pieces: ["one ", "two ", "three"] }]);
  expect(written([start, begin, one, undefined, three, end, over])).toEqual([
    start,
    begin,
    one,
    update("text_delta", 0, { delta: "two three" }),
    end,
    over,
  ]);
});

test("whatever updates are missing, the deltas that are written equal the final text", () => {
  const block = fc.record({
    kind: fc.constantFrom("text" as const, "thinking" as const),
    pieces: fc.array(fc.string({ maxLength: 5 }), { minLength: 1, maxLength: 6 }),
  });
  fc.assert(
    fc.property(fc.array(block, { minLength: 1, maxLength: 4 }), fc.infiniteStream(fc.boolean()), (blocks, lost) => {
      const events = message(blocks).map((event) =>
        event["type"] === "message_update" && lost.next().value === true ? undefined : event,
      );
      const texts = shown(written(events));
      for (const [index, { pieces }] of blocks.entries()) expect(texts.get(index) ?? "").toBe(pieces.join(""));
    }),
  );
});

test("a block whose start and end are missing is whole at the end of its message", () => {
  const [start, , , end, over] = message([{ kind: "text", pieces: ["lost"] }]);
  expect(end).toBeDefined();
  expect(shown(written([start, undefined, over])).get(0)).toBe("lost");
});
