import { expect, test } from "vitest";
import type { Result } from "../../../client/browser.ts";
import { SessionCosts } from "../../../web/state/costs.ts";
import { SubscribedBodies } from "../../../web/state/request-bodies.ts";
import { type ListedRequest, shownRequests, sumsOf } from "../../../web/state/request-facts.ts";
import { SessionRequests } from "../../../web/state/requests.ts";
import { barsOf, heightOf, onClock } from "../../../web/state/tape.ts";
import { FakeDaemon, settled } from "./fake-daemon.ts";
import { FakePage } from "./fake-page.ts";

const minute = 60_000;

function usage(
  input: number,
  cacheRead: number,
  cacheWrite: number,
  output: number,
): NonNullable<ListedRequest["usage"]> {
  const cost = { input, output: 5 * output, cacheRead: cacheRead / 10, cacheWrite };
  const total = (cost.input + cost.output + cost.cacheRead + cost.cacheWrite) / 1e6;
  return {
    input,
    output,
    cacheRead,
    cacheWrite,
    totalTokens: input + output + cacheRead + cacheWrite,
    cost: { ...cost, total },
  };
}

function listed(entryId: string, startedAt: number, fields: Partial<ListedRequest> = {}): ListedRequest {
  return {
    entryId,
    kind: "answer",
    startedAt,
    endedAt: startedAt + 100,
    model: "scripted/model-1",
    stopReason: "stop",
    usage: usage(10, 0, 0, 5),
    ...fields,
  };
}

const failure = { stopReason: "error", error: "529", usage: usage(0, 0, 0, 0) } as const;

test("what was not reported is unknown, and in no sum", () => {
  const { usage: _usage, ...silent } = listed("c", 300);
  const shown = shownRequests([listed("a", 100, failure), listed("b", 200), silent], []);
  expect(shown.map((request) => [request.outcome, request.usage?.totalTokens])).toEqual([
    ["failed", undefined],
    ["answered", 15],
    ["answered", undefined],
  ]);
  expect(sumsOf(shown)).toEqual({ tokens: 15, usd: 35 / 1e6, unknown: 2 });
});

test("a request that read less than the one before had left in the cache has lost it, whatever failed between them", () => {
  const shown = shownRequests(
    [
      listed("a", 1, { usage: usage(0, 0, 5_000, 1) }),
      listed("b", 2, failure),
      listed("c", 3, { usage: usage(0, 5_000, 2_000, 1) }),
      listed("d", 4, { usage: usage(0, 1_000, 6_500, 1) }),
      listed("e", 5, { usage: usage(0, 7_000, 500, 1) }),
      listed("f", 6, { usage: usage(300, 0, 0, 1) }),
    ],
    [],
    new Map([["d", "model"]]),
  );
  expect(shown.map(({ lost }) => lost)).toEqual([
    undefined,
    undefined,
    undefined,
    { tokens: 6_000, cause: "model" },
    undefined,
    undefined,
  ]);
});

test("live requests belong to the answers that were written after them, the last ones are under way", () => {
  const live = (requestId: string, at: number, attempt = 1) => ({
    ...{ requestId, at, attempt, model: "scripted/model-1", messageCount: 2, payloadBytes: 10, payloadSha256: "0" },
    ...{
      composition: undefined,
      deliveryIds: [],
      end: { kind: "delivered", evidence: "headers", latencyMs: 30, status: 200 } as const,
    },
  });
  const shown = shownRequests(
    [listed("a", 100), listed("b", 300, { stopReason: "toolUse" })],
    [live("x", 301), live("y", 390, 2)],
  );
  expect(
    shown.map(({ id, outcome, untilAnswerMs, totalMs, toolsMs }) => ({ id, outcome, untilAnswerMs, totalMs, toolsMs })),
  ).toEqual([
    { id: "a", outcome: "answered", untilAnswerMs: undefined, totalMs: 100, toolsMs: undefined },
    { id: "b", outcome: "answered", untilAnswerMs: 31, totalMs: 100, toolsMs: 0 },
    { id: "y", outcome: "answering", untilAnswerMs: 30, totalMs: undefined, toolsMs: undefined },
  ]);
});

test("long pauses are named on the tape, and cut out of the clock", () => {
  const shown = shownRequests(
    [
      listed("a", 0),
      listed("b", 200, { stopReason: "toolUse" }),
      listed("c", 10 * minute),
      listed("d", 10 * minute + 150),
    ],
    [],
  );
  expect(barsOf(shown).map(({ pauseMs }) => pauseMs)).toEqual([undefined, undefined, 10 * minute - 300, undefined]);
  const places = onClock(
    shown.map((request) => ({ ...request, toolsMs: undefined })),
    50,
  );
  expect(places).toEqual([
    { from: 0, to: 100 },
    { from: 200, to: 300 },
    { from: 350, to: 450 },
    { from: 500, to: 600 },
  ]);
});

test("over 200 requests, ten share a bar as high as their mean; so they do where there is no room", () => {
  const many = (count: number) =>
    shownRequests(
      Array.from({ length: count }, (_, index) =>
        listed(`e${index}`, index * 200, { usage: usage(index % 10, 0, 0, 1) }),
      ),
      [],
    );
  expect(barsOf(many(200), 500)).toHaveLength(200);
  const folded = barsOf(many(201), 500);
  expect(folded).toHaveLength(21);
  expect(folded[0]?.requests).toHaveLength(10);
  expect(heightOf(folded[0]?.tokens)).toBe(5.5);
  expect(folded[20]?.requests).toHaveLength(1);
  expect(barsOf(many(100), 90)).toHaveLength(10);
});

class Scene {
  readonly daemon = new FakeDaemon();
  readonly page = new FakePage();
  spent = 0;
  listed: readonly ListedRequest[] = [];
  seq = 0;

  constructor() {
    this.daemon.on("request/list", ({ limit = 200 }) => ({
      requests: this.listed.slice(-limit) as Result<"request/list">["requests"],
      isWhole: this.listed.length <= limit,
    }));
  }

  open(): SessionRequests {
    return new SessionRequests({
      daemon: this.daemon,
      page: this.page,
      sessionId: "s1",
      onSpent: () => {
        this.spent += 1;
      },
    });
  }

  notify(name: string, params: object): void {
    this.seq += 1;
    this.daemon.notify({ name, params: { sessionId: "s1", seq: this.seq, at: 1, ...params } } as never);
  }

  answered(request: ListedRequest): void {
    this.listed = [...this.listed, request];
    this.notify("session/event", { event: { type: "message_end", message: { role: "assistant" } } });
  }

  provider(step: "Prepared" | "Delivered" | "Failed", params: object): void {
    const told = { sessionId: "s1", after: this.seq, at: 1, ...params };
    this.daemon.request({ name: `provider/request${step}`, params: told } as never);
  }

  get limits(): readonly unknown[] {
    return this.daemon.calls.map(({ params }) => (params as { limit?: number }).limit);
  }
}

test("a request is shown while it is under way, and stays chosen when it gets its entry", async () => {
  const scene = new Scene();
  scene.listed = [listed("a", 100)];
  const requests = scene.open();
  await settled();
  expect(requests.chosen.value).toBeUndefined();
  scene.provider("Prepared", { requestId: "x", at: 500, attempt: 1, deliveryIds: ["d1"], messageCount: 3 });
  requests.step(1);
  expect(requests.chosen.value).toMatchObject({ id: "x", outcome: "sending", deliveryIds: ["d1"] });
  scene.provider("Delivered", { requestId: "x", at: 530, evidence: "headers", latencyMs: 30, status: 200 });
  expect(requests.chosen.value).toMatchObject({ outcome: "answering", status: 200 });
  scene.answered(listed("b", 500));
  await settled();
  expect(requests.all.value.map(({ id }) => id)).toEqual(["a", "b"]);
  expect(requests.chosen.value).toMatchObject({ id: "b", outcome: "answered", evidence: "headers", untilAnswerMs: 30 });
  expect(scene.spent).toBe(1);
});

test("a request of a run that has ended without an entry is under way no longer", async () => {
  const scene = new Scene();
  const requests = scene.open();
  await settled();
  scene.provider("Prepared", { requestId: "x", at: 500, attempt: 1, deliveryIds: [], messageCount: 3 });
  expect(requests.all.value).toHaveLength(1);
  scene.notify("run/ended", { runId: "r", outcome: "interrupted" });
  // The next run has begun before the list is read.
  scene.provider("Prepared", { requestId: "y", at: 600, attempt: 1, deliveryIds: [], messageCount: 3 });
  await settled();
  expect(requests.all.value.map(({ id }) => id)).toEqual(["y"]);
});

test("reads only the newest after an answer, and all again where some are missing between them", async () => {
  const scene = new Scene();
  scene.listed = Array.from({ length: 50 }, (_, index) => listed(`e${index}`, index * 200));
  const requests = scene.open();
  await settled();
  scene.answered(listed("e50", 50 * 200));
  await settled();
  expect(scene.limits).toEqual([1_000, 20]);
  expect(requests.all.value.map(({ id }) => id)).toEqual(scene.listed.map(({ entryId }) => entryId));

  scene.listed = Array.from({ length: 100 }, (_, index) => listed(`e${index}`, index * 200));
  scene.answered(listed("e100", 100 * 200));
  await settled();
  expect(scene.limits).toEqual([1_000, 20, 20, 1_000]);
  expect(requests.all.value).toHaveLength(101);
  expect(requests.isWhole.value).toBe(true);
});

test("a reported cause is shown with the request that lost its cache; a hidden page reads nothing until it is shown", async () => {
  const scene = new Scene();
  scene.listed = [listed("a", 1, { usage: usage(0, 0, 5_000, 1) })];
  const requests = scene.open();
  await settled();
  scene.page.hide(true);
  const loss = {
    cause: "edit:pruning",
    position: "message 1",
    predictedTokens: 5_000,
    readTokens: 100,
    missedTokens: 4_900,
  };
  scene.notify("cache/broken", { ...loss, missedUsd: 0.1, model: "scripted/model-1" });
  scene.answered(listed("b", 200, { usage: usage(0, 100, 5_000, 1) }));
  await settled();
  expect(scene.limits).toEqual([1_000]);
  scene.page.hide(false);
  await settled();
  expect(scene.limits).toEqual([1_000, 20]);
  expect(requests.all.value[1]?.lost).toEqual({ tokens: 4_900, cause: "edit:pruning" });
});

test("costs are read again after each change, once for several, and the cache's only while somebody looks", async () => {
  const daemon = new FakeDaemon();
  daemon.answer("cost/report", { total: usage(1, 0, 0, 1) });
  const costs = new SessionCosts({ daemon, page: new FakePage(), sessionId: "s1" });
  await settled();
  costs.changed();
  costs.changed();
  costs.changed();
  await settled();
  expect(daemon.calls.map(({ method }) => method)).toEqual(["cost/report", "cost/report", "cost/report"]);
  const leave = costs.look();
  await settled();
  expect(daemon.calls.map(({ method }) => method).slice(3)).toEqual(["cost/report", "cache/report"]);
  expect(costs.report.value).toMatchObject({ kind: "known" });
  expect(costs.cache.value).toMatchObject({ kind: "refused" });
  leave();
  costs.changed();
  await settled();
  expect(daemon.calls.map(({ method }) => method).slice(5)).toEqual(["cost/report"]);
});

test("messages and payloads come only when they are asked for, and only those of the last 5 requests are kept", async () => {
  const daemon = new FakeDaemon();
  let capabilities = ["observe", "prompt"];
  daemon.on("daemon/info", () => ({ capabilities }) as unknown as Result<"daemon/info">);
  const bodies = new SubscribedBodies({ daemon, sessionId: "s1" });
  const prepare = (requestId: string, body: object): void =>
    daemon.request({ name: "provider/requestPrepared", params: { sessionId: "s1", requestId, ...body } } as never);
  expect(daemon.subscriptions).toEqual([]);

  expect(await bodies.start()).toEqual({ kind: "done" });
  expect(daemon.subscriptions.map(({ listener }) => listener.provider)).toEqual(["messages"]);
  expect(bodies.level.value).toBe("off");
  daemon.subscriptions[0]?.listener.begin({ cursor: 0, epoch: "a" });
  expect(bodies.level.value).toBe("messages");
  for (let number = 1; number <= 7; number += 1) prepare(`r${number}`, { messages: [{ role: "user" }, null] });
  prepare("r8", {});
  expect([...bodies.known.value.keys()]).toEqual(["r3", "r4", "r5", "r6", "r7"]);
  expect(bodies.known.value.get("r7")).toEqual({ messages: [{ role: "user" }], isCut: false });
  bodies.stop();
  expect([daemon.subscriptions.length, bodies.known.value.size, bodies.level.value]).toEqual([0, 0, "off"]);

  capabilities = ["observe", "prompt", "payload"];
  await Promise.all([bodies.start(), bodies.start()]);
  expect(daemon.subscriptions.map(({ listener }) => listener.provider)).toEqual(["payload"]);
  prepare("r9", { payload: { model: "m" }, truncated: true });
  expect(bodies.known.value.get("r9")).toEqual({ payload: { model: "m" }, isCut: true });

  bodies.close();
  await bodies.start();
  expect(daemon.subscriptions).toEqual([]);
});
