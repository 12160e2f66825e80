import { expect, test } from "vitest";
import { DaemonFeed, type DaemonFeedListener } from "../../../client/daemon-feed.ts";
import type { DaemonEvent } from "../../../protocol/feed.ts";

const at = (seq: number, after = seq - 1): DaemonEvent => ({
  ...{ seq, after, at: 0, kind: "session", state: "changed", sessionId: "s" },
});

/** A feed whose daemon answers on request, and its readers, each with its received events. */
function stage() {
  const asked: { params: unknown; answer: (result: unknown) => void }[] = [];
  const call = (method: string, params: unknown): Promise<never> => {
    if (method === "daemon/info") return Promise.resolve({ feed: { cursor: 10, epoch: "e" } } as never);
    const { promise, resolve } = Promise.withResolvers<never>();
    asked.push({ params, answer: (result) => resolve(result as never) });
    return promise;
  };
  const feed = new DaemonFeed({ call: call as never, watch: { isUsed: false } });
  return {
    feed,
    /** The params of the daemon's last call, after this many calls. */
    asked: async (times: number): Promise<unknown> => {
      await expect.poll(() => asked.length).toBe(times);
      return asked.at(-1)?.params;
    },
    answer: async (cursor: number, epoch = "e"): Promise<void> => {
      asked.at(-1)?.answer({ cursor, epoch });
      await new Promise((resolve) => setImmediate(resolve));
    },
    join: (after?: number, epoch?: string) => {
      const heard: string[] = [];
      const listener: DaemonFeedListener = {
        begin: ({ cursor }) => void heard.push(`begin ${cursor}`),
        gap: ({ from, to, reason }) => void heard.push(`${reason} ${from}-${to}`),
        receive: ({ seq }) => void heard.push(String(seq)),
        end: ({ kind }) => void heard.push(kind),
      };
      feed.join(listener, after, epoch);
      return { heard, leave: () => feed.leave(listener) };
    },
  };
}

test("readers with different cursors share a subscription, and each gets every event once and in order", async () => {
  const { feed, asked, answer, join } = stage();
  const first = join();
  expect(await asked(1)).toEqual({ after: 10, epoch: "e" });
  await answer(10);
  feed.receive(at(11));
  const second = join(5, "e");
  expect(await asked(2)).toEqual({ after: 5, epoch: "e" });
  feed.receive(at(12));
  await answer(12);
  // Sent before the answer, and overtaken by it.
  feed.receive(at(13));
  feed.receiveGap({ from: 6, to: 7, reason: "not_retained" });
  for (const seq of [8, 9, 10, 11, 12, 13, 14]) feed.receive(at(seq));
  expect(first.heard).toEqual(["begin 10", "11", "12", "13", "14"]);
  expect(second.heard).toEqual(["begin 12", "not_retained 6-7", "8", "9", "10", "11", "12", "13", "14"]);
  // The event says if others are outside its token's limits; unexplained holes are reported.
  feed.receive(at(17, 14));
  feed.receive(at(20, 18));
  expect(second.heard.slice(-3)).toEqual(["17", "unreported 18-18", "20"]);
});

test("after a lost connection it continues from its position, and reports a different feed", async () => {
  const { feed, asked, answer, join } = stage();
  const { heard, leave } = join(3);
  expect(await asked(1)).toEqual({ after: 3 });
  await answer(4);
  feed.receive(at(4));
  feed.suspend();
  const late = join(2, "e");
  feed.resume();
  expect(await asked(2)).toEqual({ after: 2, epoch: "e" });
  feed.suspend();
  feed.resume();
  // Calls on the previous connection are never answered.
  expect(await asked(3)).toEqual({ after: 2, epoch: "e" });
  await answer(1, "f");
  feed.receiveGap({ from: 0, to: 2, reason: "log_reset" });
  feed.receive(at(1));
  expect(heard).toEqual(["begin 4", "4", "log_reset 0-4", "1"]);
  expect(late.heard).toEqual(["begin 1", "log_reset 0-2", "1"]);
  leave();
  // A cursor of a feed that is gone, of a reader that is ahead of the others.
  const old = join(9, "e");
  expect(await asked(4)).toEqual({ after: 1, epoch: "f" });
  await answer(1, "f");
  expect(await asked(5)).toEqual({ after: 0, epoch: "f" });
  await answer(1, "f");
  feed.receive(at(1));
  feed.receive(at(2));
  expect(old.heard).toEqual(["begin 1", "log_reset 0-9", "1", "2"]);
  expect(late.heard.slice(3)).toEqual(["2"]);
  feed.end({ kind: "client_closed", error: new Error("closed") });
  expect([heard, old.heard, late.heard].map((all) => all.at(-1))).toEqual(["1", "client_closed", "client_closed"]);
});

test("events that arrive together with the answer to the subscription are not lost", async () => {
  const { feed, asked, answer, join } = stage();
  const first = join(5, "e");
  await asked(1);
  // One chunk of the socket can have all three frames, and the answer is a promise.
  const answered = answer(9);
  feed.receiveGap({ from: 6, to: 7, reason: "not_retained" });
  feed.receive(at(8));
  await answered;
  feed.receive(at(9));
  expect(first.heard).toEqual(["begin 9", "not_retained 6-7", "8", "9"]);
  // A late event of the earlier subscription leaves a hole, and is sent again in its place.
  const second = join(7, "e");
  await asked(2);
  feed.receive(at(10));
  const again = answer(10);
  feed.receive(at(8));
  await again;
  for (const seq of [9, 10, 11]) feed.receive(at(seq));
  expect(second.heard).toEqual(["begin 10", "8", "9", "10", "11"]);
  expect(first.heard.slice(-2)).toEqual(["10", "11"]);
});
