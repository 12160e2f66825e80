import { expect, test } from "vitest";
import type { PruningOptions } from "../../../protocol/pruning/options.ts";
import { answer, call, type ToolCall } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, startPi } from "../extension/driver.ts";
import { entriesOf, Model } from "../optimisation/model.ts";

const long = { text: "words of an output\n", times: 1_000 };
const always: PruningOptions = { enabled: true, protectRecentTurns: 1, notification: "minimal" };

const compress = (startId: string, endId: string, summary = "Found."): ToolCall =>
  call("compress", { topic: "Looking around", ranges: [{ startId, endId, summary }] });

/** The results that the model gets for its newest calls, the oldest first. */
function told(pi: Pi, count: number): readonly string[] {
  const results = entriesOf(pi).filter(({ message }) => message?.role === "toolResult");
  return results.slice(-count).map(({ message }) => message?.content.map(({ text }) => text).join("\n") ?? "");
}

const changesOf = (pi: Pi): readonly unknown[] =>
  pi.frames("notice").flatMap((notice) => (notice.name === "pruning/changed" ? [notice.data] : []));

test("several calls in one message run in sequence, each completely or not at all, and a forbidden caller gets an error", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, pruning: always, after: ["emitting"] });
  const model = new Model(pi, provider);
  const configure = async (pruning: PruningOptions): Promise<void> => {
    await pi.send({ kind: "configure", parts: pi.partsOf({}, { ...always, ...pruning }), isForNext: false });
  };
  // m001 the prompt, m002 to m005 outputs.
  await model.calls(...Array.from({ length: 4 }, () => call("emit", long)));

  // The second overlaps with the first one's result; one range of the third is wrong, so that nothing is stored.
  provider.add(
    answer(
      compress("m001", "m002"),
      compress("m002", "m003"),
      call("compress", {
        topic: "Both",
        ranges: [
          { startId: "m003", endId: "m003", summary: "Found." },
          { startId: "m004", endId: "m900", summary: "Found." },
        ],
      }),
      compress("b1", "m003", "(b1) and more."),
    ),
    answer("Done."),
  );
  pi.log.forget("hello");
  await pi.rpc({ type: "prompt", message: "Compress." });
  await pi.settled();
  const [first, second, third, fourth] = told(pi, 4).map((text) => text.split("\n")[0]);
  expect(first).toMatch(/^b1 stands for m001–m002: /u);
  expect(second).toBe("m002 is inside b1. Use b1.");
  expect(third).toMatch(/^ranges\[1\]: m900 does not exist\. The newest id is m\d+\.$/u);
  expect(fourth).toMatch(/^b2 stands for b1–m003: /u);
  expect(changesOf(pi)).toMatchObject([
    { cause: "compress", blocks: ["b1"], pruned: ["m001", "m002"] },
    { cause: "compress", blocks: ["b2"], pruned: ["m003"] },
  ]);

  await configure({ compress: { permission: "deny" } });
  expect(await model.calls(compress("m004", "m004"))).toEqual([
    expect.stringContaining("Compression is not permitted in this session."),
  ]);

  await configure({ compress: { permission: "ask" } });
  for (const confirmed of [false, true]) {
    provider.add(answer(compress("m004", "m004")), answer("Done."));
    pi.log.forget("hello");
    await pi.rpc({ type: "prompt", message: "Go on." });
    const asked = await pi.log.until(({ method }) => method === "confirm");
    expect(asked).toMatchObject({ type: "extension_ui_request", timeout: 60_000 });
    expect(asked["message"]).toMatch(/^"Looking around"\nm004: \d+ → \d+ tokens$/u);
    pi.write({ type: "extension_ui_response", id: asked["id"], confirmed });
    await pi.settled();
    const [answered] = told(pi, 1);
    expect(answered).toMatch(
      confirmed ? /^b3 stands for m004: / : /^The user has not allowed this compression; continue with the task\.$/u,
    );
  }

  await configure({ enabled: false });
  expect(await model.calls(compress("m005", "m005"), call("compress", {}))).toEqual([
    "Pruning is off for this session.",
    "Pruning is off for this session.",
  ]);
});

test("a block is kept even if another extension replaces the results' details, and its number is assigned once", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, pruning: always, after: ["emitting", "own-details"] });
  const model = new Model(pi, provider);
  await model.calls(call("emit", long), call("emit", long), call("emit", long));
  provider.add(
    answer(compress("m001", "m002"), compress("m003", "m003")),
    answer(compress("b1", "m004", "(b1) (b2)")),
    answer("Done."),
  );
  pi.log.forget("hello");
  await pi.rpc({ type: "prompt", message: "Compress." });
  await pi.settled();
  expect(told(pi, 3).map((text) => text.split(":")[0])).toEqual([
    "b1 stands for m001–m002",
    "b2 stands for m003",
    "b3 stands for b1–m004",
  ]);
  expect(changesOf(pi)).toMatchObject([{ blocks: ["b1"] }, { blocks: ["b2"] }, { blocks: ["b3"] }]);
  const [request] = (await model.run()).slice(-1);
  const texts = request?.messages.flatMap((message) => message.texts).join("\n") ?? "";
  expect(texts.split("[Compressed conversation section]\nThis is a record")).toHaveLength(2);
  expect(texts).toContain("<dcp-message-id>b3</dcp-message-id>");
});

test("another extension's tool named compress is kept, and turns pruning off", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, pruning: always, after: ["emitting", "own-compress"] });
  const degraded = await pi.frame("notice", ({ name }) => name === "pruning/degraded");
  expect(degraded.data).toEqual({
    reason: "tool_conflict",
    message: "Another extension has a tool named compress.",
  });
  const model = new Model(pi, provider);
  expect(await model.calls(call("compress"))).toEqual(["Theirs."]);
  expect(pi.frames("notice")).toEqual([]);
  expect(JSON.stringify(provider.requests.map(({ body }) => body))).not.toContain("dcp-message-id");
});
