import { join } from "node:path";
import { expect, test } from "vitest";
import { answer, call, thinking } from "../../../provider/reply.ts";
import { startStage } from "../../helpers/stage.ts";

const emitting = join(import.meta.dirname, "..", "..", "fixtures", "extension", "emitting.ts");
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const sum = (values: Readonly<Record<string, number>>) => Object.values(values).reduce((all, one) => all + one, 0);

test("what fills the window adds up to its use, before a request, after one, and with a block", async () => {
  await using stage = await startStage();
  const { client, cwd, provider } = stage;
  const session = await client.createSession({
    ...{ cwd, model: "scripted/model-1", extensions: [emitting] },
    pruning: { enabled: true, protectRecentTurns: 1, strategies: { deduplication: { enabled: false } } },
  });
  const { id: sessionId } = session;
  const look = async () => {
    const { window } = await client.call("optimisation/inspect", { sessionId });
    const pruning = await client.call("pruning/inspect", { sessionId });
    expect(sum(window.byKind)).toBe(window.used);
    expect([sum(pruning.byKind), pruning.window?.used]).toEqual([window.used, window.used]);
    return window;
  };
  const { used, byKind } = await look();
  // There are no messages yet, but each request has the prompt and the tools.
  expect(Object.keys(byKind).toSorted()).toEqual(["system", "tools"]);
  expect(used).toBeGreaterThan(500);

  provider.add(answer(call("emit", { text: "a line\n", times: 2_000 })), answer(thinking("Hm. ".repeat(50)), "Done."));
  await session.push({ customType: "n", content: "pushed ".repeat(30), deliverAs: "nextTurn" }).accepted;
  const images = [{ type: "image", data: pixel, mimeType: "image/png" } as const];
  await session.promptAndWait("Emit.", { images });
  await session.promptAndWait("And now?");
  const whole = await look();
  for (const kind of ["system", "tools", "user", "assistant", "thinking", "toolResults", "images", "pushes"]) {
    expect([kind, (whole.byKind[kind] ?? 0) > 0]).toEqual([kind, true]);
  }
  const [largest] = whole.largest ?? [];
  expect(largest).toMatchObject({ kind: "toolResults", tool: "emit", at: expect.any(Number) });
  const { entries } = await client.call("session/getEntries", { sessionId });
  expect(entries.find(({ id }) => id === largest?.entryId)).toMatchObject({ message: { role: "toolResult" } });

  const { messages } = await client.call("pruning/inspect", { sessionId });
  const result = messages.find(({ entryId }) => entryId === largest?.entryId)?.id ?? "";
  const ranges = [{ startId: messages[0]?.id ?? "", endId: result, summary: "It was emitted." }];
  const { tokens } = await client.call("pruning/compress", { sessionId, topic: "First", ranges });
  const pruned = await look();
  expect(pruned.byKind["blocks"]).toBeGreaterThan(0);
  expect([pruned.byKind["toolResults"] ?? 0, pruned.byKind["images"] ?? 0]).toEqual([0, 0]);
  expect((pruned.largest ?? []).map(({ entryId }) => entryId)).not.toContain(largest?.entryId);
  expect(tokens).toBeGreaterThan(0);
  expect(pruned.used).toBeLessThan(whole.used / 2);
});
