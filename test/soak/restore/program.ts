import { setTimeout as sleep } from "node:timers/promises";
import { inspect } from "node:util";
import type { Client } from "../../../client/index.ts";
import type { PiUnderTest } from "../../helpers/pi-versions.ts";
import { RestoreStage } from "../../helpers/restore-stage.ts";
import type { Frame, RecordFault } from "../../helpers/session-record.ts";
import { lateNotifications, PatchedSource } from "../planted.ts";
import { Random } from "../random.ts";
import { Tally } from "../tally.ts";
import { Actor, Script } from "./actor.ts";
import { lastRound, type Round, rounds } from "./rounds.ts";

export interface RestoreSoakOptions {
  readonly seed: number;
  readonly pi: PiUnderTest;
  /** How often a daemon is killed. */
  readonly kills: number;
  /** How many sessions work at the same time. Default: 3. */
  readonly sessions?: number;
  /** The checkout whose daemon and helper are run. Default: those under test. */
  readonly source?: string;
  /** Only the rounds whose name matches. Default: all. */
  readonly only?: RegExp;
  /** Tells each change some time after its commit, so that kills come between them. Only without `source`. */
  readonly tellsLate?: boolean;
  /** Ends with the first session in which something is wrong. Default: true. */
  readonly endsAtFirst?: boolean;
  readonly say?: (line: string) => void;
}

export interface RestoreReport {
  readonly seed: number;
  readonly version: string;
  readonly seconds: number;
  readonly kills: Readonly<Record<string, number>>;
  readonly rounds: Readonly<Record<string, number>>;
  readonly sessions: number;
  readonly frames: number;
  /** Envelopes that were compared with those of the same number. */
  readonly compared: number;
  /** Steps of prompts, deliveries, runs and dialogs that were told; one that was told again is a fault. */
  readonly receipts: number;
  readonly gaps: number;
  readonly deltasWithOtherTimes: number;
  readonly requests: number;
  readonly faults: readonly (RecordFault & { readonly session: string; readonly known: string })[];
}

/** How many rounds a session has before it is checked and closed. */
const roundsPerSession = 8;
/** A round that takes longer than this hangs, in milliseconds. */
const roundTimeoutMs = 300_000;
/** How long a kill waits for the frame that it is meant to follow, in milliseconds. */
const cueTimeoutMs = 2_000;

/** What a client has just got when the daemon is killed. */
const cues: readonly ((frame: Frame) => boolean)[] = [
  () => true,
  ...["prompt/updated", "run/started", "run/ended", "delivery/updated", "dialog/opened", "dialog/resolved"].map(
    (name) => (frame: Frame) => frame.method === name,
  ),
  ...["message_start", "message_end", "tool_execution_start", "tool_execution_end", "agent_settled"].map(
    (name) => (frame: Frame) => frame.type === name,
  ),
];

/** Kills daemons while sessions work, and checks what clients were told. */
export async function restoreSoak(options: RestoreSoakOptions): Promise<RestoreReport> {
  const startedAt = performance.now();
  const { seed, pi, kills } = options;
  using late = options.tellsLate === true ? new PatchedSource(...lateNotifications) : undefined;
  const source = options.source ?? late?.path;
  const script = new Script();
  const stage = await RestoreStage.open({
    pi,
    provider: { otherwise: script.respond },
    extensions: ["asking"],
    agent: {
      settings: { compaction: { enabled: false } },
      models: Array.from({ length: options.sessions ?? 3 }, (_, n) => ({
        id: `model-${n}`,
        contextWindow: 100_000_000,
      })),
    },
    ...(source === undefined ? {} : { source }),
  });
  const run = new Run(stage, script, new Random(seed), options);
  try {
    await run.all(kills);
  } finally {
    await run.end();
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  return { seed, version: pi.version, seconds, ...run.figures() };
}

class Run {
  readonly #stage: RestoreStage;
  readonly #script: Script;
  readonly #random: Random;
  readonly #options: RestoreSoakOptions;
  readonly #actors = new Set<Actor>();
  readonly #kills = new Tally();
  readonly #rounds = new Tally();
  readonly #faults: RestoreReport["faults"][number][] = [];
  /** A client for each session, as programs have it. */
  readonly #clients: Client[] = [];
  readonly #diagnostics: string[] = [];
  #sessions = 0;
  #frames = 0;
  #compared = 0;
  #receipts = 0;
  #gaps = 0;
  #deltasWithOtherTimes = 0;
  #isOver = false;
  #killing: Promise<void> | undefined;
  /** Rejects with the first fault: nothing that waits may get its answer. */
  readonly #failed = Promise.withResolvers<never>();
  /** Starts and ends of sessions, and kills: one at a time. */
  #exclusive: Promise<unknown> = Promise.resolve();

  constructor(stage: RestoreStage, script: Script, random: Random, options: RestoreSoakOptions) {
    this.#stage = stage;
    this.#script = script;
    this.#random = random;
    this.#options = options;
    this.#failed.promise.catch(() => {});
  }

  /** Resolves when the daemon was killed so often, and the work that had begun is checked. */
  async all(kills: number): Promise<void> {
    // A client that connects for the first time does not try again.
    const sessions = Array.from({ length: this.#options.sessions ?? 3 }, (_, n) => n);
    this.#clients.push(...(await Promise.all(sessions.map((n) => this.#client(n)))));
    const workers = this.#clients.map((client, n) => this.#work(n, client, this.#random.fork()));
    this.#killing = this.#killAll(kills)
      .catch((error: unknown) => {
        if (!this.#hasFailed) throw error;
      })
      .finally(() => {
        this.#isOver = true;
      });
    await Promise.all([...workers, this.#killing]);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#killing?.catch(() => {});
    for (const actor of this.#actors) await actor[Symbol.asyncDispose]();
    await this.#stage[Symbol.asyncDispose]();
  }

  figures(): Omit<RestoreReport, "seed" | "version" | "seconds"> {
    return {
      kills: this.#kills.all(),
      rounds: this.#rounds.all(),
      sessions: this.#sessions,
      frames: this.#frames,
      compared: this.#compared,
      receipts: this.#receipts,
      gaps: this.#gaps,
      deltasWithOtherTimes: this.#deltasWithOtherTimes,
      requests: this.#stage.provider.requests.length + this.#stage.provider.droppedRequests,
      faults: this.#faults,
    };
  }

  get #hasFailed(): boolean {
    return this.#faults.length > 0 && this.#options.endsAtFirst !== false;
  }

  #client(n: number): Promise<Client> {
    // A responder to dialogs has no other way to say that its answer was refused.
    return this.#stage.client({
      onDiagnostic: (diagnostic) => this.#diagnostics.push(`model-${n}: ${inspect(diagnostic).slice(0, 500)}`),
    });
  }

  /** Works in one session after the other. The first fault ends it, by closing its client. */
  async #work(n: number, client: Client, random: Random): Promise<void> {
    do {
      try {
        await this.#session(n, client, random);
      } catch (error) {
        if (!this.#hasFailed) throw error;
      }
    } while (!this.#isOver && !this.#hasFailed);
  }

  async #session(n: number, client: Client, random: Random): Promise<void> {
    this.#sessions += 1;
    const options = { name: `s${this.#sessions}`, stage: this.#stage, client, script: this.#script, random };
    const actor = await this.#alone(() => Actor.open({ ...options, model: `model-${n}` }));
    this.#actors.add(actor);
    try {
      await Promise.race([this.#play(actor), this.#failed.promise]);
    } catch (error) {
      // What is found after a kill comes first.
      await this.#alone(async () => {});
      if (!this.#hasFailed) actor.record.say("state", `${error instanceof Error ? error.stack : error}`);
    }
    await this.#collect(actor);
    await this.#alone(() => actor.session.close());
    this.#actors.delete(actor);
    await actor[Symbol.asyncDispose]();
  }

  async #play(actor: Actor): Promise<void> {
    const { only } = this.#options;
    const chosen = rounds.filter(({ name }) => only?.test(name) !== false);
    const deck = Array.from({ length: roundsPerSession }, (_, n) => chosen[n % chosen.length] as Round);
    for (const round of actor.random.shuffled(deck)) {
      await this.#play1(actor, round);
    }
    await this.#play1(actor, lastRound);
    await this.#play1(actor, { name: "the check", run: () => actor.check() });
  }

  async #play1(actor: Actor, round: Round): Promise<void> {
    actor.round = round.name;
    const giveUp = new AbortController();
    const late = sleep(roundTimeoutMs, "late" as const, { signal: giveUp.signal, ref: false }).catch(() => undefined);
    const first = await Promise.race([round.run(actor), late]);
    giveUp.abort();
    if (first === "late") {
      const { state, runId } = await actor.session.get();
      const { sessionId } = actor.record;
      const prompts = JSON.stringify(await this.#clients[0]?.call("prompt/list", { sessionId, limit: 5 }));
      const queue = JSON.stringify(await actor.session.getQueue());
      const dialogs = (await actor.session.dialogs()).map(({ dialogId, title }) => `${dialogId} "${title}"`);
      const diagnostics = this.#diagnostics.slice(-5).join("; ");
      throw new Error(
        `It did not end within ${roundTimeoutMs} ms: ${state}, run ${runId}, queue ${queue}, prompts ${prompts}, dialogs ${dialogs.join(", ")}, diagnostics ${diagnostics}`,
      );
    }
    this.#rounds.count(round.name);
  }

  async #collect(actor: Actor): Promise<void> {
    const { record, pid, round } = actor;
    this.#frames += record.frames.size;
    this.#compared += record.compared;
    this.#receipts += record.receipts;
    this.#gaps += record.gaps.length;
    this.#deltasWithOtherTimes += record.deltasWithOtherTimes;
    const known = `${actor.name}, pi ${pid}, in the round "${round}", newest number ${record.newest}`;
    const found = record.faults.splice(0);
    this.#faults.push(...found.map((fault) => ({ ...fault, session: record.sessionId, known })));
    if (!this.#hasFailed) return;
    this.#failed.reject(new Error("something else is wrong"));
    await Promise.all(this.#clients.map((client) => client.close()));
  }

  async #killAll(kills: number): Promise<void> {
    const random = this.#random.fork();
    let done = 0;
    while (done < kills && !this.#hasFailed && !this.#isOver) {
      await this.#cue(random);
      if (this.#hasFailed || this.#isOver) return;
      done += await this.#alone(() => this.#killOnce(random, kills - done));
      this.#options.say?.(
        `${done} kills, ${this.#sessions} sessions, ${this.#frames} frames checked, ${this.#faults.length} faults`,
      );
    }
  }

  /** Kills the daemon, perhaps also the next ones while they restore. Returns how many were killed. */
  async #killOnce(random: Random, most: number): Promise<number> {
    await this.#stage.kill();
    this.#kills.count("while it listens");
    let killed = 1;
    for (const actor of this.#actors) {
      if (!random.chance(0.3)) continue;
      if (random.chance(0.5)) await actor.late.leave();
      else actor.late.join();
    }
    while (killed < most && random.chance(0.35)) {
      const hasListened = await this.#stage.startAndKill(random.integer(50, 2_500));
      this.#kills.count(hasListened ? "directly after its start" : "during its start");
      killed += 1;
    }
    await this.#stage.start();
    for (const actor of this.#actors) await actor.checkIdentity();
    // Without its pi nothing that follows means anything.
    for (const actor of this.#actors) if (actor.record.faults.length > 0) await this.#collect(actor);
    return killed;
  }

  /** Waits for a random moment: some time, or the next frame of a kind. */
  async #cue(random: Random): Promise<void> {
    await sleep(random.integer(0, 1_500));
    if (random.chance(0.8)) {
      const fits = random.pick(cues);
      const cue = Promise.withResolvers<void>();
      const unwatch = [...this.#actors].map(({ record }) =>
        record.watch((frame) => {
          if (fits(frame)) cue.resolve();
        }),
      );
      await Promise.race([cue.promise, sleep(cueTimeoutMs)]);
      for (const stop of unwatch) stop();
    }
    if (random.chance(0.5)) await sleep(random.integer(0, 30));
  }

  #alone<T>(act: () => Promise<T>): Promise<T> {
    const done = this.#exclusive.then(act);
    this.#exclusive = done.catch(() => {});
    return done;
  }
}

/** A summary of the run, and what is wrong. */
export function restoreReportText(report: RestoreReport): string {
  const { seed, version, seconds, kills, rounds: played, sessions, frames, gaps, requests, faults } = report;

  const listed = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .map(([name, count]) => `${name} ${count}`)
      .join(", ");
  const total = Object.values(kills).reduce((sum, count) => sum + count, 0);
  return [
    ...faults
      .slice(0, 30)
      .map(
        ({ kind, message, session, known }) =>
          `${kind.toUpperCase()} (seed ${seed}, ${session}): ${message}\n  ${known}`,
      ),
    `live restore with pi ${version}: seed ${seed}, ${(seconds / 60).toFixed(1)} min, ${total} kills (${listed(kills)})`,
    `  ${sessions} sessions, ${frames} numbers, ${report.compared} envelopes compared, ${gaps} gaps, ${report.deltasWithOtherTimes} deltas with another time`,
    `  ${requests} requests seen, ${report.receipts} receipts told, each once but for the faults; rounds: ${listed(played)}`,
    `  ${faults.length} faults: ${listed(Object.fromEntries([...Map.groupBy(faults, ({ kind }) => kind)].map(([kind, all]) => [kind, all.length])))}`,
  ].join("\n");
}
