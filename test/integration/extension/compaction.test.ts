import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, delayed, hold, status } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, push, startPi } from "./driver.ts";

const settings = { compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 10 } };

async function addHistory(pi: Pi): Promise<void> {
  for (const nth of [1, 2]) {
    await pi.rpc({ type: "prompt", message: "A long story. ".repeat(100) });
    await pi.settled(nth);
  }
}

test.for([
  ["succeeds", answer("A summary.")],
  ["fails", status(400)],
] as const)("a push during a compaction that %s starts its run when that is over", async ([, reply]) => {
  const gate = new Gate();
  await using provider = await startProvider();
  await using pi = await startPi({ provider, settings });
  await addHistory(pi);
  provider.add(delayed(hold(gate), reply));
  const compaction = pi.rpc({ type: "compact" }).catch(() => {});
  await gate.reached;
  expect(await pi.hold(push("d1", "Meanwhile."), push("d2", "A note.", { triggerTurn: false }))).toEqual({
    held: ["d1", "d2"],
    inserted: [],
    running: false,
  });
  expect(await pi.send({ kind: "carry" })).toEqual({ started: false });
  expect(await pi.send({ kind: "beforePrompt" })).toEqual({ held: ["d1", "d2"], inserted: [], running: false });
  expect(provider.requests).toHaveLength(3);
  gate.open();
  await compaction;
  await pi.settled(3);
  expect(provider.requests.filter((request) => request.hasText("Meanwhile."))).toHaveLength(1);
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
  expect(pi.receiptsOf("d2")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
  expect(await pi.inserted()).toEqual(["d1", "d2"]);
});
