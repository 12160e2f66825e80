import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import type { ChildSupervisor } from "../../../server/children/child-supervisor.ts";
import { Occupancy } from "../../../server/children/occupancy.ts";

interface FakeSession {
  readonly sessionId: string;
  readonly supervisor: ChildSupervisor;
  /** How often its child was asked to end. */
  readonly asked: () => number;
  /** Called to end the child. Returns the reason if it is kept. */
  onAsked: () => Promise<"running" | undefined>;
  /** Why the daemon keeps it. */
  keptFor: () => "subscription" | undefined;
  /** Whether its idle time is over. */
  isDue: boolean;
  /** How long its end takes. */
  endMs: number;
}

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A session with an idle child. One that is `stopped` does not respond when asked to end. */
function fakeSession(sessionId: string, lastUsedAt: number, isStopped: boolean, exit: () => void): FakeSession {
  let asked = 0;
  let child: object | undefined = {};
  const fallAsleep = async (): Promise<unknown> => {
    asked += 1;
    const reason = await session.onAsked();
    if (isStopped) return await new Promise(() => {});
    if (reason !== undefined) return reason;
    child = undefined;
    if (session.endMs === 0) exit();
    return { ended: session.endMs === 0 ? Promise.resolve() : later(session.endMs).then(exit) };
  };
  const hibernation = {
    get child() {
      return child;
    },
    lastUsedAt,
    keepsAwake: () => session.keptFor(),
    isDue: () => session.isDue,
    fallAsleep,
  };
  const session: FakeSession = {
    sessionId,
    supervisor: { hibernation, look: () => {} } as unknown as ChildSupervisor,
    asked: () => asked,
    onAsked: async () => undefined,
    keptFor: () => undefined,
    isDue: true,
    endMs: 0,
  };
  return session;
}

interface OccupancySetup {
  /** Whether each child is stopped; the first is the least recently used. */
  readonly stopped: readonly boolean[];
  readonly placeTimeoutMs?: number;
  readonly endPatienceMs?: number;
  readonly lookEveryMs?: number;
  /** The memory limit of all children; each uses 100. */
  readonly maxChildrenBytes?: number;
}

async function world(options: OccupancySetup) {
  const { stopped, placeTimeoutMs = 60_000, endPatienceMs = 10, lookEveryMs = 1e9, maxChildrenBytes = 1e9 } = options;
  const sessions: FakeSession[] = [];
  const exits: (() => void)[] = [];
  const occupancy = new Occupancy({
    limits: {
      maxChildren: stopped.length,
      maxChildrenBytes,
      placeTimeoutMs,
      endPatienceMs,
      lookEveryMs,
      weighEveryMs: 0,
    },
    sessions: () => sessions,
    warm: () => 0,
    shrinkWarm: () => false,
    log: pino({ level: "silent" }),
    bytesOf: async (pids) => pids.length * 100,
  });
  onTestFinished(() => occupancy.close());
  const place = async (signal = new AbortController().signal) => {
    const exited = Promise.withResolvers<{ expected: boolean }>();
    await occupancy.place(async () => ({ child: { exited: exited.promise } as never }), signal);
    return () => exited.resolve({ expected: true });
  };
  for (const [i, isStopped] of stopped.entries()) {
    const exit = await place();
    exits.push(exit);
    sessions.push(fakeSession(`s${i}`, i, isStopped, exit));
  }
  return { sessions, exits, occupancy, place, asked: () => sessions.map((session) => session.asked()) };
}

const kindOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => "placed",
    (error) => error.kind ?? error.message,
  );

test("starts are refused in time if each idle child is stopped and none of them ends", async () => {
  const { place, asked } = await world({ stopped: [true, true], placeTimeoutMs: 100 });
  expect(await Promise.all([kindOf(place()), kindOf(place())])).toEqual(["overloaded", "overloaded"]);
  expect(asked()).toEqual([1, 1]);
});

test("a cancelled start ends immediately, and does not delay others", async () => {
  const { place, sessions, exits } = await world({ stopped: [true], endPatienceMs: 60_000 });
  const caller = new AbortController();
  const attempt = kindOf(place(caller.signal));
  await expect.poll(() => sessions[0]?.asked()).toBe(1);
  const behind = kindOf(place());
  caller.abort(new Error("gone"));
  expect(await attempt).toBe("gone");
  exits[0]?.();
  expect(await behind).toBe("placed");
});

test("while a stopped child does not end another idle one is ended, and no more than needed", async () => {
  const { place, asked, occupancy } = await world({ stopped: [true, false, false, false] });
  await place();
  expect(asked()).toEqual([1, 1, 0, 0]);
  await Promise.all([place(), place()]);
  expect(asked()).toEqual([1, 1, 1, 1]);
  expect(occupancy.size).toBe(4);
});

test("a slot that becomes free by itself is used while the end of another child is awaited", async () => {
  const { place, sessions, exits, asked } = await world({ stopped: [true, false], endPatienceMs: 60_000 });
  const placed = place();
  await expect.poll(() => sessions[0]?.asked()).toBe(1);
  exits[1]?.();
  await placed;
  expect(asked()).toEqual([1, 0]);
});

test("a child that refused is asked again when something changes while the end of another is awaited", async () => {
  const { place, sessions, occupancy, asked } = await world({ stopped: [false, true], placeTimeoutMs: 2_000 });
  const [refusing, stopped] = sessions as [FakeSession, FakeSession];
  refusing.onAsked = async () => "running";
  stopped.onAsked = async () => {
    refusing.onAsked = async () => undefined;
    occupancy.changed();
    return undefined;
  };
  expect(await kindOf(place())).toBe("placed");
  expect(asked()).toEqual([2, 1]);
});

test("a waiting start finds a child that silently becomes idle, also shortly before the start is refused", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  for (const times of [{ lookEveryMs: 10 }, { placeTimeoutMs: 1_000 }]) {
    const { place, sessions, asked } = await world({ stopped: [false], ...times });
    const [session] = sessions as [FakeSession];
    session.isDue = false;
    session.keptFor = () => "subscription";
    const attempt = kindOf(place());
    await vi.advanceTimersByTimeAsync(0);
    session.keptFor = () => undefined;
    await vi.advanceTimersByTimeAsync(1_000);
    expect(await Promise.race([attempt, Promise.resolve("waits")])).toBe("placed");
    expect(asked()).toEqual([1]);
  }
});

test("no child is ended for a start that has almost no time left", async () => {
  const { place, asked } = await world({ stopped: [false], placeTimeoutMs: 40 });
  expect(await kindOf(place())).toBe("overloaded");
  expect(asked()).toEqual([0]);
});

test("children whose idle time is over end though one of them is stopped", async () => {
  const { occupancy, asked } = await world({ stopped: [true, false] });
  void occupancy.look();
  await expect.poll(asked).toEqual([1, 1]);
});

test("only as many idle children end as exceed the memory limit, though each takes its time to end", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { occupancy, sessions } = await world({ stopped: Array(8).fill(false), maxChildrenBytes: 650 });
  for (const session of sessions) Object.assign(session, { isDue: false, endMs: 13 });
  const looked = occupancy.look();
  await vi.advanceTimersByTimeAsync(1_000);
  await looked;
  expect(occupancy.size).toBe(6);
});

test("memory that is freed late counts, though the children to be ended next are stopped", async () => {
  const { occupancy, sessions, asked } = await world({ stopped: [false, true, true], maxChildrenBytes: 250 });
  const [slow, , last] = sessions as [FakeSession, FakeSession, FakeSession];
  for (const session of sessions) session.isDue = false;
  const { promise, resolve } = Promise.withResolvers<undefined>();
  slow.onAsked = () => promise;
  last.onAsked = async () => {
    resolve(undefined);
    return undefined;
  };
  await occupancy.look();
  expect(occupancy.size).toBe(2);
  expect(asked()).toEqual([1, 1, 1]);
});
