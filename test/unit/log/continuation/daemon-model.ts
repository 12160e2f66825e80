import { mkdtempSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { vi } from "vitest";
import type { NotificationName } from "../../../../protocol/notifications.ts";
import { SeqNumbers } from "../../../../server/core/seq-numbers.ts";
import { largeRecord } from "../../../../server/frames/large-record.ts";
import type { EventLog } from "../../../../server/log/event-log.ts";
import { Journal } from "../../../../server/log/journal.ts";
import { KeptPlace } from "../../../../server/log/kept-place.ts";
import { Logs } from "../../../../server/log/logs.ts";
import type { LogPlace, OwedNotification } from "../../../../server/store/children.ts";
import { type Parameters as Bound, Statement } from "../../../../server/store/connection.ts";
import type { Database } from "../../../../server/store/database.ts";
import { EventTail, type StagedBody } from "../../../../server/store/event-tail.ts";
import { EventStore } from "../../../../server/store/events.ts";
import type { Random } from "../../../soak/random.ts";
import { diagnostic, type PiModel, type PiRecord } from "./pi-model.ts";
import type { ClientModel, Witness } from "./witness.ts";

/** A fault of the daemon that the simulation must find. */
export type Plant =
  | "own notification while replaying"
  | "own notifications are not looked for"
  | "kept past what is open"
  | "events are told before they are written"
  | "receipts are forgotten while replaying";

/** What may go wrong around the daemon. */
export interface Faults {
  readonly tail?: true;
  readonly store?: true;
  /** Few rows are kept. */
  readonly retention?: true;
  /** Less output is kept. */
  readonly maxKeptBytes?: number;
}

/** The place of a child in the store. */
export interface Row {
  readonly applied: LogPlace;
  readonly kept: LogPlace;
  readonly untold: readonly OwedNotification[];
}

/** The n-th step that another process can see is the last. */
export class Kill {
  #left: number;

  constructor(steps: number) {
    this.#left = steps;
  }

  get isDead(): boolean {
    return this.#left <= 0;
  }

  /** Returns whether the daemon is dead after one more step. */
  isNow(): boolean {
    this.#left -= 1;
    return this.isDead;
  }

  step(): void {
    this.#left -= 1;
    this.check();
  }

  check(): void {
    if (this.isDead) throw new Killed();
  }
}

class Killed extends Error {}

/** What survives a daemon. */
export interface World {
  readonly pi: PiModel;
  readonly witness: Witness;
  readonly clients: readonly ClientModel[];
  readonly connection: DatabaseSync;
  readonly root: string;
  readonly random: Random;
  readonly plant: Plant | undefined;
  readonly faults: Faults;
  /** How often each receipt's change was stored, and the ids of runs. */
  readonly changes: Map<number, number>;
  readonly runs: Map<number, string>;
  /** A daemon could not store the tail of the one before. */
  hasLost: boolean;
  /** Of the tail of the logs. */
  directory: string;
  kill: Kill;
  row: Row;
  reserved: number;
  runIds: number;
  /** The end of the records that any daemon handled. */
  handled: number;
  /** The log went on with other numbers. */
  mismatches: number;
  /** Daemons that were killed before they had repeated everything. */
  killedInReplay: number;
}

const sessionId = "s";
export const receipt: NotificationName = "session/controlChanged";
export const keepMs = 10_000;
export const maxStoredEventBytes = 2_000;
const epoch = "e";
const storeAfterMs = 200;

/** Lives until the world's kill, or until everything is done if `isLast`. */
export async function live(world: World, isLast: boolean): Promise<void> {
  let daemon: DaemonModel | undefined;
  const { kill } = world;
  try {
    const store = storeOf(world);
    const recorded = new Map([[sessionId, { epoch, reservedSeq: world.reserved }]]);
    const isRecovered = await Logs.recover(store, world.directory, recorded).then(
      () => true,
      () => false,
    );
    kill.check();
    // What the last daemon still deletes must not be a file of this one.
    if (!isRecovered) world.hasLost = true;
    if (world.hasLost) world.witness.allowed = { ...world.witness.allowed, losses: true };
    if (isRecovered) world.directory = mkdtempSync(join(world.root, "tail-"));
    daemon = new DaemonModel(world, store, isRecovered);
    await daemon.run(isLast);
  } catch (error) {
    if (!kill.isDead) throw error;
  } finally {
    if (daemon?.isReplaying !== false) world.killedInReplay += 1;
    world.kill = new Kill(0);
    daemon?.close();
    const now = Date.now();
    vi.clearAllTimers();
    // That has set the clock back.
    vi.setSystemTime(now);
    for (const client of world.clients) client.disconnect();
  }
}

class DaemonModel {
  readonly #world: World;
  readonly #kill: Kill;
  readonly #tail: TailModel;
  readonly #log: EventLog;
  readonly #journal: Journal;
  readonly #kept: KeptPlace;
  /** The end of the last record whose changes are made. */
  #applied: number;
  /** Up to where output was received, and the next record. */
  #received: number;
  #next: number;
  /** Former daemons were sent output up to here. */
  readonly #replayTo: number;
  #isListening = false;
  /** Changes that wait for a transaction. */
  #changes: number[] = [];
  #runs = new Map<number, string>();
  /** Receipts whose change is stored. */
  readonly #untold: OwedNotification[];

  constructor(world: World, store: EventStore, isRecovered: boolean) {
    const { pi, row, witness, faults, kill, directory } = world;
    this.#world = world;
    this.#kill = kill;
    this.#replayTo = pi.everSent;
    if (row.kept.offset < pi.base) witness.errors.push(`${row.kept.offset} is not kept: ${pi.base} is`);
    const reserve = async (upTo: number): Promise<void> => {
      world.reserved = upTo;
    };
    this.#kept = new KeptPlace(row.kept, { maxBytes: faults.maxKeptBytes ?? 1 << 22, keepMs });
    this.#applied = row.applied.offset;
    this.#received = row.kept.offset;
    this.#next = pi.indexAt(row.kept.offset);
    this.#untold = [...row.untold];
    const numbers = new SeqNumbers({ reserved: world.reserved, reserve, flush: () => true });
    this.#tail = new TailModel(directory, world);
    const limits = {
      maxRetainedBytes: 1 << 24,
      maxRetainedBytesInAll: 1 << 26,
      storeAfterMs,
      maxUnstoredBytes: 4_000,
      maxStoredEventBytes,
    };
    this.#log = new Logs(store, limits, this.#tail, isRecovered).open(sessionId, epoch, numbers, {
      continuation: {
        seq: row.kept.seq,
        saidAfter: row.applied.seq,
        isExact: !pi.isInexact,
        onMismatch: (why, seq) => this.#mismatch(why, seq),
      },
      onUnwritten: () => {
        pi.isInexact = true;
      },
    });
    const onFault = (error: unknown): void => void witness.errors.push(String(error));
    this.#journal = new Journal({ sessionId, epoch, log: this.#log, onFault });
  }

  get isReplaying(): boolean {
    return !this.#isListening;
  }

  async run(isLast: boolean): Promise<void> {
    const { pi, clients, witness } = this.#world;
    while (witness.errors.length === 0) {
      await this.#act(isLast);
      if (!this.#isListening && this.#received >= this.#replayTo && this.#whole === undefined) {
        this.#journal.replayed();
        this.#isListening = true;
      }
      if (this.#isListening && !this.#owes) this.#journal.forgetSaid();
      if (isLast && this.#isListening && this.#handledTo === pi.head && !this.#owes) break;
    }
    for (const client of clients) this.#attach(client);
    await vi.advanceTimersByTimeAsync(storeAfterMs);
  }

  close(): void {
    this.#tail.close();
    this.#log.close();
  }

  get #handledTo(): number {
    return this.#world.pi.records[this.#next]?.start ?? this.#world.pi.head;
  }

  /** The next record that was received whole. */
  get #whole(): PiRecord | undefined {
    const record = this.#world.pi.records[this.#next];
    return record !== undefined && record.end <= this.#received ? record : undefined;
  }

  /** Whether changes or receipts of handled records are not stored or told. */
  get #owes(): boolean {
    return this.#changes.length + this.#runs.size + this.#untold.length + this.#journal.unsaid.length > 0;
  }

  async #act(isLast: boolean): Promise<void> {
    const { pi, clients, random } = this.#world;
    // Otherwise most daemons would be killed before they listen.
    const isFast = !this.#isListening && random.chance(0.7);
    const choice = isFast ? random.integer(16, 70) : random.integer(1, 100);
    if (choice <= 15) {
      if (!isLast) for (let i = random.integer(1, 6); i > 0; i -= 1) pi.write();
    } else if (choice <= 30) {
      this.#received = Math.min(pi.head, this.#received + random.integer(1, random.pick([50, 400, 8_000])));
      pi.everSent = Math.max(pi.everSent, this.#received);
    } else if (choice <= 70) {
      const record = this.#whole;
      if (record !== undefined) await this.#handle(record);
    } else if (choice <= 78) this.#commit();
    else if (choice <= 86) {
      const said = this.#untold.shift();
      if (said !== undefined) this.#say(said);
    } else if (choice <= 88) this.#say({ method: "session/updated", params: { at: random.integer(1, 1e9) } });
    else if (choice <= 89) {
      if (this.#isListening) this.#journal.record(Buffer.from('{"type":"rpcd_entry","entry":{}}'), 1, false);
    } else if (choice <= 95) {
      const client = random.pick(clients);
      if (client.isConnected) client.disconnect();
      else this.#attach(client);
    } else await vi.advanceTimersByTimeAsync(random.pick([3, 40, 300, 300, 4_000, 12_000]));
    this.#kill.step();
  }

  #attach(client: ClientModel): void {
    if (client.isConnected || !this.#isListening) return;
    client.connect();
    this.#journal.subscribe(client, { after: client.cursor, epoch });
  }

  async #handle(record: PiRecord): Promise<void> {
    const { bytes, kind, n, start, end } = record;
    const world = this.#world;
    const journal = this.#journal;
    if (kind !== "delta" && world.plant !== "kept past what is open")
      this.#kept.note(bytes, { offset: start, seq: journal.cursor });
    const isApplied = end <= this.#applied;
    if (kind === "unparsable") {
      if (!isApplied) this.#say({ method: "session/event", params: { generation: 1, event: diagnostic } });
    } else if (kind === "large") {
      const large = largeRecord(bytes.length);
      bytes.copy(large);
      await journal.stage(large);
      this.#kill.step();
      journal.record(large, 1, false);
    } else if (kind !== "response") journal.record(bytes, 1, kind === "delta");
    this.#next += 1;
    world.handled = Math.max(world.handled, end);
    if (isApplied) return;
    this.#applied = end;
    if (kind === "receipt") this.#changes.push(n);
    if (kind === "run") this.#startRun(n);
  }

  /** The id of a run is told before it is stored. */
  #startRun(n: number): void {
    const world = this.#world;
    const known = new Set([...world.runs.values(), ...this.#runs.values()]);
    const found = this.#journal.findSaid("run/started", ({ runId }) => !known.has(String(runId)));
    world.runIds += 1;
    const runId = found === undefined ? `run-${world.runIds}` : String(found["runId"]);
    this.#runs.set(n, runId);
    this.#say({ method: "run/started", params: { runId, promptIds: [] } });
  }

  #say({ method, params }: OwedNotification): void {
    const isEarly = this.#world.plant === "own notification while replaying" && this.#journal.isReplaying;
    if (isEarly) this.#log.append(method, params);
    else this.#journal.say(method, params);
  }

  /** Stores all changes, together with the place up to which they are made. */
  #commit(): void {
    const world = this.#world;
    const journal = this.#journal;
    const receipts = this.#changes.map((n): OwedNotification => ({ method: receipt, params: { n } }));
    const owed = [...this.#untold, ...receipts].filter(({ method, params }) => !journal.hasSaid(method, params));
    const waits = world.plant === "receipts are forgotten while replaying" ? [] : journal.unsaid;
    const unsaid = waits.filter(({ method }) => method === receipt || method === "run/started");
    const applied = { offset: this.#applied, seq: Math.max(world.row.applied.seq, journal.cursor) };
    const current = { offset: this.#handledTo, seq: journal.cursor };
    const kept = this.#kept.place(current, applied, Date.now());
    this.#kill.step();
    world.row = { applied, kept, untold: [...owed, ...unsaid] };
    for (const n of this.#changes) world.changes.set(n, (world.changes.get(n) ?? 0) + 1);
    for (const [n, runId] of this.#runs) world.runs.set(n, runId);
    this.#untold.push(...receipts);
    this.#changes = [];
    this.#runs = new Map();
    this.#kill.step();
    world.pi.base = kept.offset;
  }

  #mismatch(why: string, seq: number): void {
    const { witness } = this.#world;
    this.#kept.moveTo({ offset: this.#handledTo, seq });
    this.#world.mismatches += 1;
    if (!witness.allowed.losses) witness.errors.push(why);
  }
}

class TailModel extends EventTail {
  readonly #world: World;
  readonly #kill: Kill;

  constructor(directory: string, world: World) {
    super(directory, () => {}, 1 << 30);
    this.#world = world;
    this.#kill = world.kill;
  }

  override append(...event: Parameters<EventTail["append"]>): boolean {
    const { plant, faults, random } = this.#world;
    this.#kill.step();
    if (plant === "events are told before they are written") return true;
    if (faults.tail === true && random.chance(0.02)) return false;
    const isWritten = super.append(...event);
    this.#kill.step();
    return isWritten;
  }

  override async stage(body: Buffer): Promise<StagedBody | undefined> {
    this.#kill.step();
    return await super.stage(body);
  }
}

/** The store of logs of one daemon. */
function storeOf({ connection, faults, random, plant, kill }: World): EventStore {
  const maxSessionBytes = faults.retention === true ? 2_000 : 1 << 30;
  const store = new EventStore(directDatabase(connection), { maxSessionBytes, maxTotalBytes: 1 << 30 });
  const put = store.put.bind(store);
  const read = store.read.bind(store);
  store.put = async (...span) => {
    kill.step();
    if (faults.store === true && random.chance(0.3)) throw new Error("the store fails");
    await put(...span);
    kill.step();
  };
  if (plant === "own notifications are not looked for") {
    const isEvent = (frame: Buffer): boolean => frame.includes('"method":"session/event"');
    store.read = (...args) => {
      const { spans, isEnd } = read(...args);
      return { spans: spans.map((span) => ({ ...span, frames: span.frames.filter(isEvent) })), isEnd };
    };
  }
  return store;
}

/** Commits each statement immediately. */
function directDatabase(connection: DatabaseSync): Database {
  const run = async ({ sql }: Statement, ...parameters: Bound): Promise<void> => {
    connection.prepare(sql).run(...parameters);
  };
  const prepare = (sql: string): Statement => new Statement(sql, () => connection);
  return { prepare, note: run, write: run } as unknown as Database;
}
