import { join } from "node:path";
import { expect, test } from "vitest";
import { connect } from "../../../../client/index.ts";
import type { FeedListener } from "../../../../client/session-feed.ts";
import { Gate } from "../../../../provider/gate.ts";
import { answer, hold } from "../../../../provider/reply.ts";
import { CuttingProxy } from "../../../helpers/cutting-proxy.ts";
import { startStage } from "../../../helpers/stage.ts";

/** A safety limit: the test needs far fewer chunks. */
const maxChunks = 200;

/** Where in a chunk the connection breaks: before it, within it, after it. */
const places = [
  { from: "client", share: 0 },
  { from: "client", share: 0.5 },
  { from: "client", share: 1 },
  { from: "daemon", share: 0 },
  { from: "daemon", share: 0.5 },
] as const;

test.each(places)(
  "wherever the connection is cut, a push is delivered once, a prompt runs once, and no event is missed: $from $share",
  async ({ from, share }) => {
    await using stage = await startStage();
    const { daemon, root } = stage;
    await using proxy = await CuttingProxy.start(join(root, "proxy.sock"), daemon.file.socketPath);
    const token = daemon.file.token;
    await using client = await connect({
      socketPath: proxy.socketPath,
      token,
      validateResults: true,
      reconnect: { firstDelayMs: 1, maxDelayMs: 20 },
    });
    const { id } = await stage.session();
    const session = client.session(id);
    const events = session.events();
    await events.ready;
    const seen: number[] = [];
    const reading = (async () => {
      for await (const { seq } of events) seen.push(seq);
    })();
    let cuts = 0;
    // Each round is cut one chunk later, until a round ends before its chunk.
    for (let nth = 1; nth <= maxChunks; nth += 1) {
      const [pushed, prompted] = [`push ${nth}.`, `prompt ${nth}.`];
      proxy.cut({ from, nth, share });
      const delivery = session.push({ customType: "note", content: pushed, deliverAs: "nextTurn" });
      const { delivered } = delivery;
      await delivery.accepted;
      const answer = await session.promptAndWait(prompted);
      expect(answer).toContain(prompted);
      expect((await delivered).history.filter(({ state }) => state === "inserted")).toHaveLength(1);
      expect(await delivery.answered).toMatchObject({ state: "answered" });
      const request = stage.provider.requests.at(-1);
      expect([request?.countText(pushed), request?.countText(prompted)]).toEqual([1, 1]);
      expect(stage.provider.requests).toHaveLength(nth);
      if (!proxy.hasCut) break;
      cuts += 1;
    }
    expect(cuts).toBeGreaterThanOrEqual(2);
    expect(cuts).toBeLessThan(maxChunks);
    // The log of a connection that was never cut.
    const { cursor } = await session.get();
    const replay = stage.client.session(id).events({ after: 0 });
    const all: number[] = [];
    for await (const { seq } of replay) {
      all.push(seq);
      if (seq === seen.at(-1) || seq >= cursor) break;
    }
    expect(seen).toEqual(all.filter((seq) => seq >= (seen[0] ?? 0)));
    await events.return();
    await reading;
  },
);

test("a reader without deltas gets the end of an answer in which its connection was lost", async () => {
  const gate = new Gate();
  await using stage = await startStage({
    provider: { script: [answer("Alpha ", "beta ", hold(gate), "omega."), "After."] },
  });
  const { daemon, root } = stage;
  const { id } = await stage.session();
  const run = stage.client.session(id).prompt("Begin.");
  const socketPath = join(root, "proxy.sock");
  await using first = await CuttingProxy.start(socketPath, daemon.file.socketPath);
  const { token } = daemon.file;
  await using client = await connect({ socketPath, token, reconnect: { firstDelayMs: 1, maxDelayMs: 20 } });
  const seen: number[] = [];
  const begun = Promise.withResolvers<void>();
  const resumed = Promise.withResolvers<void>();
  const settled = Promise.withResolvers<void>();
  const receive: FeedListener["receive"] = ({ name, params }) => {
    if (name !== "session/event") return;
    seen.push(params.seq);
    const { type, message } = params.event as { readonly type: string; readonly message?: { readonly role: string } };
    if (type === "message_start" && message?.role === "assistant") begun.resolve();
    if (type === "agent_settled") settled.resolve();
  };
  const more = { deltas: false };
  client
    .session(id)
    .listen(
      { more, begin: () => {}, resume: () => resumed.resolve(), gap: () => {}, receive, end: () => {} },
      { after: 0 },
    );
  await begun.promise;
  await first[Symbol.asyncDispose]();
  gate.open();
  await run.settled();
  await using _second = await CuttingProxy.start(socketPath, daemon.file.socketPath);
  await resumed.promise;
  await stage.client.session(id).promptAndWait("Continue.");
  await settled.promise;
  const all: number[] = [];
  for await (const { seq, event } of stage.client.session(id).events({ after: 0 })) {
    if (event.type !== "message_update") all.push(seq);
    if (event.type === "agent_settled") break;
  }
  expect(seen.filter((seq) => seq <= Number(all.at(-1)))).toEqual(all);
});
