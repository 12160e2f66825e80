import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { Delivery } from "../../../protocol/delivery.ts";
import { isTerminal } from "../../../protocol/delivery-progress.ts";
import type { Dialog } from "../../../protocol/dialog.ts";
import { limits } from "../../../server/configuration/limits.ts";
import type { Covers } from "../../../server/core/session-scope.ts";
import type { Frame } from "../../../server/frames/frame.ts";
import { Feed } from "../../../server/log/feed.ts";
import type { Connect } from "../../../server/store/connection.ts";
import { Database } from "../../../server/store/database.ts";
import { DeliveryStore } from "../../../server/store/deliveries.ts";
import { DialogStore } from "../../../server/store/dialogs.ts";
import { type FeedLimits, FeedStore } from "../../../server/store/feed.ts";
import { RunStore } from "../../../server/store/runs.ts";
import { SessionStore } from "../../../server/store/sessions.ts";
import { failingConnection } from "../../helpers/failing-connection.ts";
import { FeedFold, type Listed, stateOf } from "../../helpers/feed-fold.ts";
import { pushOf, storedDelivery, storedSession } from "../../helpers/stored.ts";

const log = pino({ level: "silent" });
/** So few that slow and absent readers miss some. */
const bounds = { maxFeedEvents: 6, maxFeedBytes: 1_000_000 };

/** A store and the feed over it, as successive daemons have them. */
class Lives implements Disposable {
  readonly bounds: FeedLimits;
  readonly #connect: Connect | undefined;
  readonly #directory = mkdtempSync(join(tmpdir(), "feed-"));
  #life = 0;
  #parts;
  #ids = 0;
  /** Unfinished operations. */
  runs: { readonly sessionId: string; readonly runId: string }[] = [];
  dialogs: Dialog[] = [];
  deliveries: Delivery[] = [];

  constructor(bounds: FeedLimits = limits.feed, connect?: Connect) {
    this.bounds = bounds;
    this.#connect = connect;
    this.#parts = this.#open();
  }

  get feed(): Feed {
    return this.#parts.feed;
  }

  get listed(): Listed {
    const { sessions, deliveries, dialogs } = this.#parts;
    return {
      sessions: sessions.all().map(({ sessionId }) => sessionId),
      deliveries: deliveries.list({ limit: 10_000 }),
      dialogs: dialogs.open(),
    };
  }

  /** One step of a daemon. Nothing waits for the disk. */
  step(what: number, which: number): void {
    const { sessions, deliveries, dialogs, runs } = this.#parts;
    const known = sessions.all();
    const session = known[which % Math.max(1, known.length)];
    this.#ids += 1;
    const id = `id-${this.#ids}`;
    if (session === undefined || what === 0) {
      void sessions.put(storedSession(id, { cwd: `/${which % 2}` }));
      return;
    }
    const { sessionId } = session;
    if (what === 1) void sessions.put({ ...session, name: id, updatedAt: this.#ids });
    if (what === 2) void sessions.put({ ...session, reservedSeq: this.#ids });
    if (what === 3) {
      for (const dialog of this.dialogs.filter((open) => open.sessionId === sessionId)) this.#resolve(dialog);
      void sessions.delete(sessionId);
      void dialogs.deleteOf(sessionId);
    }
    if (what === 4) {
      this.runs.push({ sessionId, runId: id });
      void runs.put(sessionId, { runId: id, startedAt: 1, promptIds: [] });
    }
    if (what === 5) this.#end("settled");
    if (what === 6) {
      this.dialogs.push(dialogOf(id, sessionId));
      void dialogs.put(dialogOf(id, sessionId));
    }
    if (what === 7 && this.dialogs[0] !== undefined) this.#resolve(this.dialogs[0]);
    if (what === 8) {
      this.deliveries.push(storedDelivery(id, sessionId));
      deliveries.add({ push: pushOf(id, "x"), delivery: storedDelivery(id, sessionId) }).catch(() => {});
    }
    if (what === 9) this.#advance(which);
  }

  /** Writes everything to disk. */
  async written(): Promise<void> {
    await this.#parts.database.written();
  }

  /** The next daemon has only what is on disk at this moment; it ends the unfinished work of the former one. */
  kill(): void {
    const former = this.#parts.database;
    for (const suffix of ["", "-wal"]) {
      const file = this.#file(suffix);
      if (existsSync(file)) copyFileSync(file, this.#file(suffix, this.#life + 1));
    }
    this.#life += 1;
    this.#parts = this.#open();
    former.close();
    const { sessions, runs, dialogs, deliveries } = this.#parts;
    this.deliveries = deliveries.list({ limit: 10_000 }).filter((delivery) => !isTerminal(delivery));
    this.dialogs = [...dialogs.open()];
    for (const dialog of dialogs.open()) this.#resolve(dialog);
    this.runs = sessions
      .all()
      .flatMap(({ sessionId }) => runs.of(sessionId).map(({ runId }) => ({ sessionId, runId })));
    while (this.runs.length > 0) this.#end("interrupted");
  }

  [Symbol.dispose](): void {
    this.#parts.database.close();
    rmSync(this.#directory, { recursive: true });
  }

  #open() {
    const database = new Database(this.#file(""), () => {}, { ...(this.#connect && { connect: this.#connect }) });
    return {
      database,
      sessions: new SessionStore(database),
      runs: new RunStore(database),
      deliveries: new DeliveryStore(database),
      dialogs: new DialogStore(database),
      feed: new Feed(new FeedStore(database, this.bounds), log),
    };
  }

  #file(suffix: string, life = this.#life): string {
    return join(this.#directory, `${life}.db${suffix}`);
  }

  #end(outcome: "settled" | "interrupted"): void {
    const run = this.runs.shift();
    if (run !== undefined) void this.#parts.runs.end(run.sessionId, run.runId, outcome);
  }

  #resolve(dialog: Dialog): void {
    this.dialogs = this.dialogs.filter(({ dialogId }) => dialogId !== dialog.dialogId);
    void this.#parts.dialogs.put({ ...dialog, state: "resolved" });
  }

  #advance(which: number): void {
    const delivery = this.deliveries.shift();
    if (delivery === undefined) return;
    const state = delivery.state === "delivered" ? "answered" : which % 2 === 0 ? "delivered" : "cancelled";
    const next: Delivery = { ...delivery, state, updatedAt: this.#ids, settledAt: delivery.settledAt ?? this.#ids };
    if (!isTerminal(next)) this.deliveries.push(next);
    void this.#parts.deliveries.update(next, isTerminal(next));
  }
}

function dialogOf(dialogId: string, sessionId: string): Dialog {
  const about = { dialogId, sessionId, requestId: "r", method: "confirm", title: "t", generation: 1 } as const;
  return { ...about, openedAt: 1, deadline: 2, state: "open" };
}

/** A connection that reads its frames, or makes the feed wait. */
class Reader {
  readonly id = "reader";
  #gone = new AbortController();
  #epoch: string | undefined;
  #blocked: PromiseWithResolvers<void> | undefined;
  readonly fold = new FeedFold(0);
  gaps = 0;

  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  connect(feed: Feed, covers?: Covers): void {
    this.disconnect();
    this.#gone = new AbortController();
    this.#epoch = feed.follow(this, { after: this.fold.position, epoch: this.#epoch, covers }).epoch;
  }

  disconnect(): void {
    this.#gone.abort();
    this.goOn();
  }

  block(): void {
    this.#blocked ??= Promise.withResolvers();
  }

  goOn(): void {
    this.#blocked?.resolve();
    this.#blocked = undefined;
  }

  drained(): Promise<void> | undefined {
    return this.#blocked?.promise;
  }

  send({ bytes, seq }: Frame): void {
    const { method, params } = JSON.parse(bytes.toString("utf8"));
    if (this.gone.aborted) this.fold.mistakes.push(`${seq} was sent to a connection that had gone`);
    else if (method === "daemon/event") this.fold.event(params);
    else {
      this.gaps += 1;
      this.fold.gap(params);
    }
  }

  /** Resolves when it has everything. */
  async current(feed: Feed): Promise<void> {
    while (this.fold.position < feed.place.cursor) await nextTurn();
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

const operations = fc.array(fc.record({ what: fc.nat(16), which: fc.nat(9) }), { maxLength: 100, size: "max" });

test("whatever happens to sessions, connections and daemons, a client that folds the feed agrees with the lists", async () => {
  const seen = { gaps: 0, kills: 0 };
  await fc.assert(
    fc.asyncProperty(operations, async (steps) => {
      using lives = new Lives(bounds);
      const reader = new Reader();
      reader.connect(lives.feed);
      for (const { what, which } of steps) {
        if (what < 10) lives.step(what, which);
        else if (what < 12) await nextTurn();
        else if (what === 12) await lives.written();
        else if (what === 13) reader.disconnect();
        else if (what === 14) reader.connect(lives.feed);
        else if (what === 15) reader.block();
        else {
          lives.kill();
          seen.kills += 1;
          reader.connect(lives.feed);
        }
        if (reader.fold.isBehind) reader.fold.begin(lives.listed);
      }
      await lives.written();
      reader.connect(lives.feed);
      await reader.current(lives.feed);
      if (reader.fold.isBehind) reader.fold.begin(lives.listed);
      seen.gaps += reader.gaps;
      expect(reader.fold.mistakes).toEqual([]);
      expect(reader.fold.state).toEqual(stateOf(lives.listed));
    }),
    { numRuns: 25 },
  );
  expect(seen.gaps).toBeGreaterThan(0);
  expect(seen.kills).toBeGreaterThan(0);
});

test("a token gets events of sessions that it covers, including deleted ones, and the numbers of others", async () => {
  using lives = new Lives();
  // Alternating between the directories /0 and /1; the third session's is closed, and the first has a run.
  for (const which of [0, 1, 2]) {
    lives.step(0, which);
    await lives.written();
  }
  lives.step(3, 2);
  lives.step(4, 0);
  lives.step(5, 0);
  await lives.written();
  const heard: { method: string; params: Record<string, unknown> }[] = [];
  const reader = {
    id: "limited",
    gone: new AbortController().signal,
    send: ({ bytes }: Frame) => void heard.push(JSON.parse(bytes.toString("utf8"))),
  };
  const { epoch } = lives.feed.place;
  const follow = (after: number, cwd: string): void =>
    void lives.feed.follow(reader, { after, epoch, covers: (scope) => scope.cwd === cwd });
  follow(0, "/0");
  await expect.poll(() => heard.length).toBe(4);
  expect(heard.map(({ params: { seq, after, state } }) => [seq, after, state])).toEqual([
    [1, 0, "created"],
    [3, 1, "created"],
    [4, 3, "closed"],
    [5, 4, "settled"],
  ]);
  // The token has changed: events after the cursor are sent according to its current permissions.
  heard.length = 0;
  follow(1, "/1");
  await expect.poll(() => heard.map(({ params: { seq, after } }) => [seq, after])).toEqual([[2, 1]]);
  // A cursor of another feed, or from beyond the end of this one.
  heard.length = 0;
  lives.feed.follow(reader, { after: 3, epoch: "other" });
  await expect.poll(() => heard.length).toBe(6);
  expect(heard[0]).toMatchObject({ method: "daemon/gap", params: { from: 0, to: 3, reason: "log_reset" } });
  expect(heard[1]).toMatchObject({ method: "daemon/event", params: { seq: 1, after: 0 } });
  heard.length = 0;
  lives.feed.follow(reader, { after: 1_000, epoch });
  await expect.poll(() => heard.length).toBe(6);
  expect(heard[0]).toMatchObject({ params: { from: 0, to: 1_000, reason: "log_reset" } });
});

test("a disk that is unreadable for a while ends no follower of the feed, and loses none of its events", async () => {
  const connection = failingConnection();
  using lives = new Lives(limits.feed, connection.connect);
  const reader = new Reader();
  reader.connect(lives.feed);
  for (const fault of ["SELECT max(seq)", "SELECT * FROM feed"] as const) {
    for (const times of [1, 3]) {
      connection.fail(fault, times);
      for (const which of [0, 1]) {
        lives.step(0, which);
        await lives.written();
        await nextTurn();
      }
    }
  }
  lives.step(0, 0);
  await lives.written();
  await expect.poll(() => reader.fold.position).toBe(9);
  expect(reader.fold.mistakes).toEqual([]);
});
