import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { capabilitiesOf } from "../../../server/pi/capabilities.ts";
import type { Child } from "../../../server/pi/child.ts";
import { ChildEnvironment } from "../../../server/pi/child-environment.ts";
import type { PiProgram } from "../../../server/pi/spawn-options.ts";
import { type WarmKind, WarmPool, type WarmPoolLimits } from "../../../server/pi/warm-pool.ts";
import { patience } from "../../helpers/patience.ts";

const program: PiProgram = {
  kind: "script",
  path: "/pi",
  version: "1.5.2",
  source: "option",
  capabilities: capabilitiesOf([1, 5, 2]),
};

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "pool-"));
});
afterEach(() => {
  rmSync(root, { recursive: true });
});

/** A child that can only end. */
class Idle {
  state = { kind: "ready" };
  stopped = 0;
  readonly #exit = Promise.withResolvers<void>();
  readonly exited = this.#exit.promise;
  readonly cleaned = this.#exit.promise;

  stop(): Promise<void> {
    this.stopped += 1;
    return this.die();
  }

  die(): Promise<void> {
    this.state = { kind: "exited" };
    this.#exit.resolve();
    return this.exited;
  }
}

interface Setting extends AsyncDisposable {
  readonly pool: WarmPool;
  readonly started: Idle[];
  /** Requests the kind this often, and waits until every resulting start is over. */
  want(times?: number, kind?: WarmKind): Promise<void>;
  kind(options?: WarmKind["options"]): WarmKind;
}

function setting(limits: Partial<WarmPoolLimits> = {}, fails = false, freeBytes = 8 * 1024 ** 3): Setting {
  const started: Idle[] = [];
  let asked = 0;
  let over = 0;
  const pool = new WarmPool({
    limits: { perKind: 1, maxWarm: 4, recentMs: 60_000, minFreeBytes: 1024 ** 3, ...limits },
    env: { PI_CODING_AGENT_DIR: root },
    freeBytes: () => freeBytes,
    log: pino({ level: "silent" }),
    start: async () => {
      asked += 1;
      try {
        if (fails) throw new Error("no pi");
        const child = new Idle();
        started.push(child);
        return child as unknown as Child;
      } finally {
        over += 1;
      }
    },
  });
  const kind = (options: WarmKind["options"] = {}): WarmKind => ({ program, cwd: root, options });
  return {
    pool,
    started,
    kind,
    want: async (times = 1, wanted = kind()) => {
      const before = pool.size;
      for (let i = 0; i < times; i += 1) pool.wanted(wanted);
      await vi.waitFor(() => expect(asked).toBe(over), patience);
      if (times > 1 && !fails) await vi.waitFor(() => expect(pool.size).toBeGreaterThanOrEqual(before), patience);
    },
    [Symbol.asyncDispose]: () => pool.close(),
  };
}

test("a kind is kept warm when it is requested for the second time, and not before", async () => {
  await using at = setting();
  at.pool.wanted(at.kind());
  expect(await at.pool.take(at.kind())).toBeUndefined();
  expect(at.started).toHaveLength(0);
  at.pool.wanted(at.kind());
  await vi.waitFor(() => expect(at.pool.size).toBe(1), patience);
  expect(await at.pool.take(at.kind())).toBe(at.started[0]);
  expect(at.pool.size).toBe(0);
  expect(at.started[0]?.stopped).toBe(0);
  await at.started[0]?.die();
});

test("a child is given only to sessions with an equal environment", async () => {
  await using at = setting();
  const of = (fingerprint: string): WarmKind => ({
    ...at.kind(),
    environment: new ChildEnvironment("client", fingerprint, {}),
  });
  await at.want(2, of("one"));
  await vi.waitFor(() => expect(at.pool.size).toBe(1), patience);
  expect(await at.pool.take(at.kind())).toBeUndefined();
  expect(await at.pool.take(of("other"))).toBeUndefined();
  expect(await at.pool.take(of("one"))).toBe(at.started[0]);
  await at.started[0]?.die();
});

test("a child is never given to a session whose start would differ, and model, thinking and name do not count", async () => {
  await using at = setting();
  await at.want(2, at.kind({ tools: ["read"] }));
  await vi.waitFor(() => expect(at.pool.size).toBe(1), patience);
  expect(await at.pool.take(at.kind())).toBeUndefined();
  expect(await at.pool.take(at.kind({ tools: ["read"], approve: true }))).toBeUndefined();
  for (const more of [{ models: ["a/b"] }, { flags: { plan: true } }, { noMcp: true }] as const)
    expect(await at.pool.take(at.kind({ tools: ["read"], ...more }))).toBeUndefined();
  expect(await at.pool.take({ ...at.kind({ tools: ["read"] }), cwd: "/" })).toBeUndefined();
  const newer = { ...program, version: "1.6.0" };
  expect(await at.pool.take({ ...at.kind({ tools: ["read"] }), program: newer })).toBeUndefined();
  const other = at.kind({ tools: ["read"], model: "a/b", thinking: "low", name: "n" });
  const child = await at.pool.take(other);
  expect(child).toBe(at.started[0]);
  await child?.stop();
});

test("a child that was started before pi's settings changed is ended instead of being assigned", async () => {
  writeFileSync(join(root, "settings.json"), "{}");
  await using at = setting();
  await at.want(2);
  await vi.waitFor(() => expect(at.pool.size).toBe(1), patience);
  writeFileSync(join(root, "settings.json"), '{"theme":"dark"}');
  expect(await at.pool.take(at.kind())).toBeUndefined();
  expect(at.started[0]?.stopped).toBe(1);
});

test("a child that ends by itself is not assigned", async () => {
  await using at = setting();
  await at.want(2);
  await vi.waitFor(() => expect(at.pool.size).toBe(1), patience);
  await at.started[0]?.die();
  expect(await at.pool.take(at.kind())).toBeUndefined();
});

test("the limits of one kind and of all kinds are kept", async () => {
  await using at = setting({ maxWarm: 2 });
  await at.want(4, at.kind({ tools: ["a"] }));
  await vi.waitFor(() => expect(at.pool.size).toBe(1), patience);
  await at.want(4, at.kind({ tools: ["b"] }));
  await vi.waitFor(() => expect(at.pool.size).toBe(2), patience);
  await at.want(4, at.kind({ tools: ["c"] }));
  expect(at.started).toHaveLength(2);
});

test("nothing is kept warm when warm children are turned off, or memory is short", async () => {
  await using off = setting({ perKind: 0 });
  await off.want(5);
  await using short = setting({}, false, 100);
  await short.want(5);
  expect([off.started.length, short.started.length]).toEqual([0, 0]);
});

test("a kind whose start fails must be requested twice again", async () => {
  await using at = setting({}, true);
  await at.want(2);
  await at.want(1);
  expect(at.pool.size).toBe(0);
});

test("the memory of the least recently requested kind is released first", async () => {
  await using at = setting();
  for (const [i, tool] of ["a", "b"].entries()) {
    await at.want(2, at.kind({ tools: [tool] }));
    await vi.waitFor(() => expect(at.pool.size).toBe(i + 1), patience);
  }
  expect(at.pool.shrink()).toBe(true);
  expect(at.started[0]?.stopped).toBe(1);
  expect(at.pool.shrink()).toBe(true);
  expect(at.pool.shrink()).toBe(false);
});

test("a closed pool ends its waiting children and keeps nothing more", async () => {
  const at = setting();
  await at.want(2);
  await vi.waitFor(() => expect(at.pool.size).toBe(1), patience);
  await at.pool.close();
  expect(at.started[0]?.stopped).toBe(1);
  await at.want(3);
  expect(at.started).toHaveLength(1);
});
