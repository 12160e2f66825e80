import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Actor } from "./actor.ts";
import type { Operation } from "./operation.ts";

/** Changes the end of a file: its bytes from `from` on. */
type Damage = (bytes: Buffer, from: number) => Buffer;

const damages: Readonly<Record<string, Damage>> = {
  truncated: (bytes, from) => bytes.subarray(0, from),
  "filled with zeros": (bytes, from) => bytes.fill(0, from),
  "with a bit flipped": (bytes, from) => {
    const at = Math.min(from, bytes.length - 1);
    bytes[at] = (bytes[at] ?? 0) ^ 0x10;
    return bytes;
  },
  torn: (bytes, from) => bytes.copyWithin(from, 0, Math.min(512, bytes.length - from)),
};

async function damageStore(actor: Actor, damage: Damage): Promise<boolean> {
  const { world, random } = actor;
  const file = join(world.stateDir, "store.db-wal");
  const asideAt = Date.now();
  let isDone = false;
  // Otherwise the log restores everything, and nothing may have changed.
  const isLogDamaged = random.chance(0.5);
  const damageLog = (): void => {
    const log = join(world.stateDir, "store.changes");
    const bytes = readFileSync(log);
    if (isLogDamaged)
      writeFileSync(log, damage(bytes, bytes.length - random.integer(1, Math.min(bytes.length, 40_000))));
  };
  await actor.pushSome(3);
  await actor.pause(50);
  const damageTail = async (): Promise<void> => {
    // Only a power failure takes what was written from both files, and it ends every pi as well.
    if (isLogDamaged) await world.endChildren();
    if (!existsSync(file)) return;
    const bytes = readFileSync(file);
    if (bytes.length === 0) return;
    const tail = Math.min(bytes.length, random.integer(1, 40_000));
    writeFileSync(file, damage(bytes, bytes.length - tail));
    damageLog();
    isDone = true;
  };
  let isReported = false;
  // Only this life of the daemon reports it, so nothing may end it before it is asked.
  const ask = async (): Promise<void> => {
    for (let attempt = 0; attempt < 5; attempt += 1) {
      const called = await world.call("daemon/info", {}, random);
      if (called.kind !== "result") continue;
      isReported = called.result.store?.damaged.some(({ at }) => at >= asideAt) === true;
      if (isReported) world.ledger.damaged();
      return;
    }
  };
  await world.replaceDaemon("SIGKILL", damageTail, [], ask);
  actor.world.plan.withdraw(actor.model);
  if (!isReported) {
    // Everything that was synced must be as it was; if its log is whole, all that was written too.
    if (isLogDamaged) world.ledger.cut();
    return isDone;
  }
  world.tally.count("a damaged store reported");
  const asked = [...world.ledger.pushes.values()].map(async ({ id }) => {
    if ((await world.get(id)) === undefined) world.ledger.forgotten(id);
  });
  await Promise.all(asked);
  return isDone;
}

/** Damage to the store's files between two lives of the daemon. */
export const storeFaults: readonly Operation[] = [
  {
    kind: "daemon kill -9, and the end of the WAL damaged",
    run: (actor) => damageStore(actor, actor.random.pick(Object.values(damages))),
  },
];

/** Whether strace exists and may trace. */
export function canTrace(): boolean {
  return spawnSync("strace", ["-qq", "-e", "trace=none", "true"]).status === 0;
}

/**
 * Syncs of the store's WAL fail during a life of the daemon: refused changes must be absent, accepted ones
 * present. Needs strace.
 */
export const fileSystemFaults: readonly Operation[] = ["ENOSPC", "EIO"].map((error) => ({
  kind: `syncs of the store fail with ${error}`,
  run: async (actor) => {
    const { world, random } = actor;
    const first = random.integer(3, 30);
    const file = join(world.stateDir, "store.db-wal");
    const trace = join(world.stateDir, "..", `strace-${world.lives.life}`);
    const inject = `inject=fdatasync,fsync:error=${error}:when=${first}..${first + random.integer(0, 3)}`;
    const prefix = ["strace", "-f", "-qq", "-o", trace, "-P", file, "-e", "trace=fdatasync,fsync", "-e", inject];
    const works = world.seq.storeFails();
    await world.replaceDaemon("SIGTERM", () => {}, prefix);
    actor.world.plan.withdraw(actor.model);
    for (let i = 0; i < 12; i += 1) await actor.pushSome(3);
    await untilWritable(actor);
    const isMet = readFileSync(trace, "utf8").includes("INJECTED");
    await world.replaceDaemon("SIGTERM");
    works();
    return isMet;
  },
}));

/** Every push is accepted again: the store works. */
async function untilWritable(actor: Actor): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (performance.now() < deadline) {
    const { answer } = await actor.push({ deliverAs: "steer" });
    const info = await actor.world.call("daemon/info", {}, actor.random);
    if (answer === "accepted" && info.kind === "result" && info.result.store?.state === "open") return;
    await actor.pause(200);
  }
}
