import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, hold } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { push, startPi } from "../extension/driver.ts";
import { entriesOf, Model } from "../optimisation/model.ts";

const emit = (name: string) => call("emit", { text: `line of ${name}\n`, times: 400 });
const ranges = [{ startId: "m001", endId: "m003", summary: "All that there was." }];

test("a push that is still prepared survives a sweep and a compression, and is removed by one after it is answered (R002-33)", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({
    provider,
    pruning: { enabled: true, protectRecentTurns: 1, compress: { minRangeTokens: 0 } },
    after: ["emitting"],
  });
  const ask = async (about: string, params: object) =>
    await pi.send<{ refused?: string; message?: string; state?: string }>({ kind: "ask", about, params });
  const model = new Model(pi, provider);
  await model.run(emit("first"));

  const gate = new Gate();
  provider.add(delayed(hold(gate), answer("Read.")));
  pi.log.forget("hello");
  await pi.hold(push("d1", "the news that nobody has read yet"));
  await gate.reached;
  const refusal = await ask("pruning/compress", { topic: "All", ranges, wait: true });
  expect(refusal.refused).toBe("invalid_params");
  expect(refusal.message).toContain("m003 is still being delivered.");
  expect((await ask("pruning/sweep", { last: 5, wait: true })).state).toBe("waiting");
  gate.open();
  await pi.settled();

  const entries = entriesOf(pi);
  const pushed = entries.find(({ type }) => type === "custom_message");
  const swept = entries.filter(({ type }) => type === "context_edit");
  expect(swept.map(({ targetId }) => targetId)).toHaveLength(1);
  expect(swept.map(({ targetId }) => targetId)).not.toContain(pushed?.id);
  const [request] = await model.run();
  expect(request?.hasText("the news that nobody has read yet")).toBe(true);
  expect(request?.hasText("line of first\nline of first")).toBe(false);

  // It is answered now, and may be removed.
  expect((await ask("pruning/compress", { topic: "All", ranges })).refused).toBeUndefined();
  const [last] = await model.run();
  expect(last?.hasText("the news that nobody has read yet")).toBe(false);
  expect(last?.hasText("All that there was.")).toBe(true);
});
