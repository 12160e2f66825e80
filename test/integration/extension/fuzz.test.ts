import { expect, test } from "vitest";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, call, cut, errorEvent, hang, type Reply, reset, status } from "../../../provider/reply.ts";
import { startProvider } from "../../../provider/server.ts";
import { type Pi, push, startPi } from "./driver.ts";

// Many pushes, prompts and aborts under random faults: every receipt is compared with what the provider saw.

const rounds = 40;
const seed = Number(process.env["PI_RPCD_TEST_SEED"] ?? 20_001);

/** A seeded generator of numbers in [0, 1). */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

function faultyReply(next: () => number): Reply {
  const dice = next();
  if (dice < 0.3) return answer("Fine.", " Really.");
  if (dice < 0.5) return answer(call("bash", { command: "true" }));
  if (dice < 0.6) return status(529);
  if (dice < 0.65) return status(400);
  if (dice < 0.72) return reset();
  if (dice < 0.79) return answer("Fi", reset());
  if (dice < 0.84) return answer("Fi", errorEvent());
  if (dice < 0.88) return answer("Fi", cut());
  if (dice < 0.94) return hang();
  return answer("Fi", hang());
}

/** Ends the run: waits until it ends by itself, and aborts it when its provider hangs. */
async function rest(pi: Pi, isHanging: () => boolean): Promise<void> {
  for (;;) {
    const { running } = await pi.send<{ running: boolean }>({ kind: "ping" });
    if (!running) return;
    if (isHanging()) await pi.rpc({ type: "abort" });
  }
}

function isAnswered({ status: code, body }: LogEntry, text: string): boolean {
  return code === 200 && JSON.stringify(body).includes(text);
}

test.for([
  ["scripted", seed],
  ["scripted-anthropic", seed + 1],
] as const)("%s, seed %i: no receipt is wrong, no push is lost or duplicated", async ([api, start]) => {
  const next = random(start);
  let isTame = false;
  const otherwise = (): Reply => (isTame ? answer("Fine.") : faultyReply(next));
  await using provider = await startProvider({ otherwise });
  await using pi = await startPi({ provider, api });
  const isHanging = (): boolean => {
    const last = provider.requests.at(-1);
    return last !== undefined && last.outcome === undefined;
  };
  const ids: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    for (let n = Math.floor(next() * 4); n > 0; n -= 1) {
      const id = `d${ids.length}`;
      ids.push(id);
      const deliverAs = (["steer", "steer", "followUp", "nextTurn"] as const)[Math.floor(next() * 4)] ?? "steer";
      await pi.hold(push(id, `Unique ${id}.`, { deliverAs, triggerTurn: next() < 0.8 }));
    }
    const dice = next();
    if (dice < 0.5) await rest(pi, isHanging);
    if (dice < 0.3) {
      await pi.send({ kind: "beforePrompt" });
      await pi.rpc({ type: "prompt", message: `Prompt ${round}.` });
    } else if (dice > 0.8) {
      await pi.rpc({ type: "abort" });
    }
  }
  await rest(pi, isHanging);
  isTame = true;
  await pi.send({ kind: "beforePrompt" });
  await pi.rpc({ type: "prompt", message: "The last prompt." });
  await rest(pi, () => false);

  expect((await pi.inserted()).filter((id) => id !== "-").toSorted()).toEqual(ids.toSorted());
  expect(pi.frames("fault")).toEqual([]);
  expect(pi.log.records.filter(({ type }) => type === "extension_error")).toEqual([]);
  const prepared = pi.frames("prepared").map(({ requestId }) => requestId);
  expect(pi.frames("verdict").map(({ requestId }) => requestId)).toEqual(prepared);
  for (const id of ids) {
    const receipts = pi.receiptsOf(id);
    const saidDelivered = receipts.filter((word) => word.startsWith("delivered")).length;
    const isSeen = provider.requests.filter((request) => isAnswered(request, `Unique ${id}.`)).length;
    expect(
      receipts.filter((word) => word === "inserted"),
      `${id}: ${receipts.join(", ")}`,
    ).toHaveLength(1);
    expect(receipts.join(), id).not.toContain("un");
    expect(saidDelivered, `${id}: ${receipts.join(", ")}`).toBeGreaterThan(0);
    expect(saidDelivered, `${id}: ${receipts.join(", ")}`).toBeLessThanOrEqual(isSeen);
  }
});
