import { expect, test } from "vitest";
import { call } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { startPi } from "../extension/driver.ts";
import { entriesOf, Model } from "../optimisation/model.ts";

const range = (startId: string, endId: string, summary: string) => ({ startId, endId, summary });
const untagged = (text: string): string => text.replaceAll(/\n?<dcp-message-id>\w+<\/dcp-message-id>/gu, "");
/** Counts depend on the estimator. */
const counted = (text: string): string =>
  untagged(text)
    .replaceAll(/\b\d{2,}(?= (?:tokens|now|of|\())/gu, "N")
    .replaceAll(/\b\d+ %/gu, "N %");

test("a call of compress stores blocks or reports its errors; a second wrong placeholder in a run is corrected", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, pruning: { enabled: true, protectRecentTurns: 1 }, after: ["emitting"] });
  const model = new Model(pi, provider);
  const long = { text: "words of an output\n", times: 1_000 };
  await model.calls(call("emit", long), call("emit", long));
  const told = await model.calls(
    call("compress", { topic: "", ranges: "none" }),
    call("compress", { topic: "Looking", ranges: [range("m001", "m412", "Found.")] }),
    call("compress", { topic: "Looking", ranges: JSON.stringify(range("M1", "[m002]", "Found nothing.")) }),
    call("compress", { topic: "All", ranges: [range("b1", "m003", "Found (b2).")] }),
    call("compress", { topic: "All", ranges: [range("b1", "m003", "Found (b2).")] }),
  );
  expect(told.map(counted)).toEqual([
    "topic is empty.\nranges is not a list of ranges.\nRanges that can be compressed: m001–m003 (about N tokens).",
    "m412 does not exist. The newest id is m005.\nRanges that can be compressed: m001–m003 (about N tokens).",
    "b1 stands for m001–m002: about N tokens before, N now.\nThe context is now about N of N tokens (N %).",
    'The summary must contain (b1) once; the range contains b1.\n(b2) is not in b1–m003. Write "compressed b2" to mention it.\nRanges that can be compressed: b1–m003 (about N tokens).',
    "b2 stands for b1–m003: about N tokens before, N now. The answer after m003 is part of it. Its placeholders were put right.\nThe context is now about N of N tokens (N %).",
  ]);
  const results = entriesOf(pi).flatMap(({ message }) => (message?.role === "toolResult" ? [message.details] : []));
  expect(results.at(-1)).toMatchObject({
    v: 1,
    topic: "All",
    blocks: [
      {
        id: "b2",
        children: ["b1"],
        body: [{ text: "Found compressed b2.\n\nCompressed before, and part of this section:\n" }, { block: "b1" }],
      },
    ],
  });
});
