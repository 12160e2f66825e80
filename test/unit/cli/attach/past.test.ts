import { expect, test } from "vitest";
import { recentPast } from "../../../../cli/attach/past.ts";
import type { Client } from "../../../../client/index.ts";

const sessionId = "0199c2aa-0000-7000-8000-000000000001";
const { signal } = new AbortController();

interface Told {
  readonly method: string;
  readonly params: { readonly seq: number; readonly [key: string]: unknown };
}

/** A log of runs with 12,000 numbers before each answer, as streamed pieces take them. */
function logOf(runs: readonly number[]): readonly Told[] {
  const log: Told[] = [];
  let seq = 0;
  const add = (method: string, params: object, numbers = 1): void => {
    seq += numbers;
    log.push({ method, params: { sessionId, seq, at: seq, ...params } });
  };
  for (const [index, answers] of runs.entries()) {
    const runId = `run-${index}`;
    add("run/started", { runId, promptIds: [] });
    for (let answer = 0; answer < answers; answer += 1) {
      const usage = { input: 100, output: 10, cacheRead: 0, cacheWrite: 0 };
      const message = { role: "assistant", content: [{ type: "text", text: `answer ${answer}` }], usage };
      add("session/event", { generation: 1, event: { type: "message_end", message } }, 12_000);
    }
    add("run/ended", { runId, promptIds: [], outcome: "settled", startedAt: 0 });
  }
  return log;
}

function clientOf(log: readonly Told[]): Client {
  const cursor = log.at(-1)?.params.seq ?? 0;
  const client: Pick<Client, "call"> = {
    call: (async (_: string, { after, limit }: { after: number; limit: number }) => {
      const events = log.filter(({ params }) => params.seq > after).slice(0, limit);
      return { events, after: events.at(-1)?.params.seq ?? cursor, cursor, epoch: "e" };
    }) as Client["call"],
  };
  return client as Client;
}

test("the usage of a run is summed from its start, however few of its messages are shown", async () => {
  const log = logOf([2, 7]);
  const cursor = log.at(-1)?.params.seq ?? 0;
  const { notifications, usage, isCut } = await recentPast(clientOf(log), { sessionId, cursor }, 1, signal);
  expect(notifications.map(({ name }) => name)).toEqual(["session/event", "run/ended"]);
  expect(isCut).toBe(true);
  expect(usage.describe()).toEqual(["6 answers", "600 tokens in, 60 out"]);
  const none = await recentPast(clientOf(log), { sessionId, cursor }, 0, signal);
  expect(none.usage.describe()).toEqual(["7 answers", "700 tokens in, 70 out"]);
});

test("a sum is called a minimum if the log no longer has the run's start", async () => {
  const log = logOf([7]).slice(3);
  const cursor = log.at(-1)?.params.seq ?? 0;
  const { usage } = await recentPast(clientOf(log), { sessionId, cursor }, 1, signal);
  expect(usage.describe()[0]).toBe("at least 4 answers");
});
