import { expect, test } from "vitest";
import type { PruningStats } from "../../../protocol/pruning/report.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, hold } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { startPi } from "../extension/driver.ts";
import { Model } from "../optimisation/model.ts";

const emit = (name: string) => call("emit", { text: `line of ${name}\n`, times: 600 });
const ranges = [{ startId: "m001", endId: "m002", summary: "What came first." }];

test("the cache cost of a block counts as pruning's own and is not reported, also for a block that a user makes in a run (R002-24)", async () => {
  await using provider = await startProvider({ cache: {} });
  await using pi = await startPi({
    provider,
    api: "scripted-anthropic",
    models: [{ id: "model-1", promptCache: { short: 300, long: 3_600 } }],
    pruning: { enabled: true, protectRecentTurns: 1, strategies: { deduplication: { enabled: false } } },
    after: ["emitting"],
  });
  const model = new Model(pi, provider);
  const lost = async () => (await pi.send<PruningStats>({ kind: "ask", about: "pruning/stats", params: {} })).cache;
  await model.run(emit("first"), emit("second"), emit("third"));
  await model.run();
  expect(await lost()).toMatchObject({ misses: 0 });

  await model.run(call("compress", { topic: "Beginning", ranges }));
  const once = await lost();
  expect(once.misses).toBe(1);
  expect(once.tokens).toBeGreaterThan(1_000);

  // The order comes during a request, whose answer says nothing about the change.
  const gate = new Gate();
  provider.add(delayed(hold(gate), answer(emit("fourth"))), answer("Done."));
  pi.log.forget("hello");
  await pi.rpc({ type: "prompt", message: "Go on." });
  await gate.reached;
  const params = { topic: "Middle", ranges: [{ ...ranges[0], startId: "m003", endId: "m003" }], wait: true };
  expect(await pi.send({ kind: "ask", about: "pruning/compress", params })).toMatchObject({ state: "waiting" });
  gate.open();
  await pi.settled();
  await model.run();
  expect((await lost()).misses).toBe(2);
  expect(pi.frames("notice").map(({ name }) => name)).not.toContain("cache/broken");
});
