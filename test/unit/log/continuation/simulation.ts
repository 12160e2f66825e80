import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "../../../../server/store/connection.ts";
import { migrate } from "../../../../server/store/migrations.ts";
import { Random } from "../../../soak/random.ts";
import {
  type Faults,
  Kill,
  keepMs,
  live,
  maxStoredEventBytes,
  type Plant,
  receipt,
  type World,
} from "./daemon-model.ts";
import { PiModel } from "./pi-model.ts";
import { ClientModel, Witness } from "./witness.ts";

export interface Outcome {
  readonly errors: readonly string[];
  readonly kills: number;
  readonly killedInReplay: number;
  readonly mismatches: number;
  /** Numbers that clients were told, and how many of these by several daemons or to several clients. */
  readonly told: number;
}

const clients = 3;

/**
 * Kills `kills` daemons of a session whose pi lives on, and then lets one finish. The clock must be a fake one. The same
 * seed has the same outcome.
 */
export async function simulate(seed: number, kills: number, plant?: Plant): Promise<Outcome> {
  const random = new Random(seed);
  const root = mkdtempSync(join(tmpdir(), "continuation-"));
  const connection = connect(":memory:");
  try {
    migrate(connection);
    const isLarge = random.chance(0.15);
    const faults = plant === undefined ? faultsOf(random) : {};
    const witness = new Witness();
    const start = { offset: 0, seq: 0 };
    const world: World = {
      pi: new PiModel(random, isLarge && plant === undefined ? maxStoredEventBytes : undefined),
      witness,
      clients: Array.from(
        { length: clients },
        (_, i) => new ClientModel(`client ${i}`, witness, () => world.kill.isNow()),
      ),
      connection,
      root,
      directory: root,
      hasLost: false,
      random,
      plant,
      faults,
      changes: new Map(),
      runs: new Map(),
      kill: new Kill(0),
      row: { applied: start, kept: start, untold: [] },
      reserved: 0,
      runIds: 0,
      handled: 0,
      mismatches: 0,
      killedInReplay: 0,
    };
    const loses = (): boolean => world.pi.isInexact || world.hasLost || faults.retention === true;
    let killed = 0;
    for (let life = 0; life <= kills && witness.errors.length === 0; life += 1) {
      const isLast = life === kills;
      const steps = random.integer(1, random.pick([40, 400, 2_500]));
      world.kill = new Kill(isLast ? Number.POSITIVE_INFINITY : steps);
      const isWhole = faults.maxKeptBytes === undefined;
      witness.allowed = {
        losses: loses(),
        maxStoredBytes: maxStoredEventBytes,
        deltasUpTo: world.row.kept.seq,
        keptSince: isWhole ? Date.now() - keepMs : Number.POSITIVE_INFINITY,
        open: isWhole ? openParts(world) : new Set(),
      };
      await live(world, isLast);
      if (!isLast) killed += 1;
    }
    if (witness.errors.length === 0 && !loses()) checkReceipts(world);
    const { mismatches, killedInReplay } = world;
    return { errors: witness.errors, kills: killed, killedInReplay, mismatches, told: witness.told.size };
  } finally {
    connection.close();
    rmSync(root, { recursive: true });
  }
}

function faultsOf(random: Random): Faults {
  const kind = random.pick(["none", "none", "store", "tail", "retention", "kept"]);
  if (kind === "store") return { store: true };
  if (kind === "tail") return { tail: true };
  if (kind === "retention") return { retention: true };
  return kind === "kept" ? { maxKeptBytes: random.integer(100, 4_000) } : {};
}

/** The messages and tool calls whose start any daemon handled, and whose end none. */
function openParts({ pi, handled }: World): Set<string> {
  const open = new Set<string>();
  for (const { end, part, bytes } of pi.records) {
    if (end > handled) break;
    if (part === undefined) continue;
    if (bytes.includes("_end")) open.delete(part);
    else open.add(part);
  }
  return open;
}

/** Each change is made once, and told once. */
function checkReceipts({ pi, changes, runs, witness, handled }: World): void {
  const texts = [...witness.told.values()].map(({ text }) => text);
  const times = (part: string): number => texts.filter((text) => text.includes(part)).length;
  for (const { kind, n, end } of pi.records) {
    if (end > handled) break;
    if (kind === "receipt" && changes.get(n) !== 1) witness.errors.push(`change ${n} was made ${changes.get(n)} times`);
    if (kind === "receipt" && times(`"method":"${receipt}"`) === 0) witness.errors.push("no receipts");
    const told = kind === "run" ? `"runId":"${runs.get(n)}"` : `"at":`;
    if (kind === "run" && times(told) !== 1) witness.errors.push(`${told} was told ${times(told)} times`);
    if (kind !== "receipt") continue;
    const of = texts.filter((text) => text.includes(`"method":"${receipt}"`) && text.endsWith(`"n":${n}}}`));
    if (of.length !== 1) witness.errors.push(`receipt ${n} was told ${of.length} times`);
  }
}
