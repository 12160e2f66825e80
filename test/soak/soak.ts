import { setTimeout as sleep } from "node:timers/promises";
import type { Delivery } from "../../protocol/delivery.ts";
import { processesWith } from "../setup/processes.ts";
import { Actor, isMoving } from "./actor.ts";
import { check, groupByPush, isEnd } from "./checker.ts";
import { SoakEnvironment } from "./environment.ts";
import type { History, SoakApi, Violation } from "./history.ts";
import type { Operation } from "./operation.ts";
import { operations } from "./operations.ts";
import { Random } from "./random.ts";
import { caseText, type Failure, type Report } from "./report.ts";
import { fileSystemFaults } from "./store-faults.ts";
import { entriesOf } from "./transcripts.ts";

export interface SoakOptions {
  readonly seed: number;
  /** pi's program and its version. */
  readonly pi: { readonly cli: string; readonly version: string };
  /** The checkout whose daemon and helper are run. Default: those under test. */
  readonly source?: string;
  /** The minimum duration. Default: 0. */
  readonly seconds?: number;
  /** The minimum number of pushes. Default: 0. */
  readonly pushes?: number;
  /** How often each fault must have happened at least. Default: 0. */
  readonly eachAtLeast?: number;
  /** How often each operation is in the deck of one round. Default: 2. */
  readonly copiesPerRound?: number;
  /** Ends with the first round that finds a violation. Default: true. */
  readonly endsAtFirst?: boolean;
  /** Also faults of the file system, by strace. Default: false. */
  readonly withFileSystemFaults?: boolean;
  /** Only the operations whose kind matches. Default: all. */
  readonly only?: RegExp;
  readonly say?: (line: string) => void;
}

const apis: readonly { readonly provider: string; readonly api: SoakApi }[] = [
  { provider: "scripted", api: "openai" },
  { provider: "scripted-anthropic", api: "anthropic" },
  { provider: "scripted-google", api: "google" },
  { provider: "eager", api: "eager" },
  { provider: "scripted", api: "openai" },
];

const maxTries = 3;
const settleMs = 30_000;
const operationTimeoutMs = 150_000;
/** How long killed processes may take to disappear, in milliseconds. */
const goneWithinMs = 5_000;

/** Runs rounds of random operations on several sessions, and checks after each what was reported to clients. */
export async function soak(options: SoakOptions): Promise<Report> {
  const startedAt = performance.now();
  const { seed, pi, seconds = 0, pushes = 0, eachAtLeast = 0, say = () => {} } = options;
  const random = new Random(seed);
  const world = await SoakEnvironment.open({
    pi: pi.cli,
    ...(options.source === undefined ? {} : { source: options.source }),
  });
  try {
    const run = new Run(
      world,
      random,
      [...operations, ...(options.withFileSystemFaults === true ? fileSystemFaults : [])].filter(
        ({ kind }) => options.only?.test(kind) !== false,
      ),
    );
    const elapsed = (): number => (performance.now() - startedAt) / 1_000;
    do {
      await run.round(run.lacking(eachAtLeast, options.copiesPerRound ?? 2));
      say(
        `${elapsed().toFixed(0)} s: ${run.pushes} pushes, ${run.failures.length} failures, ${world.lives.life} lives of the daemon`,
      );
      if (run.failures.length > 0 && options.endsAtFirst !== false) break;
    } while (elapsed() < seconds || run.pushes < pushes || run.isLacking(eachAtLeast));
    await run.end();
    return { seed, version: pi.version, seconds: elapsed(), ...run.figures() };
  } finally {
    await world[Symbol.asyncDispose]();
  }
}

class Run {
  readonly failures: Failure[] = [];
  readonly #world: SoakEnvironment;
  readonly #random: Random;
  readonly #operations: readonly Operation[];
  readonly #missed = new Map<string, number>();
  readonly #ends = new Map<string, number>();
  /** The operations of the round, in the order of their start. */
  readonly #begun: { readonly at: number; readonly session: string; readonly kind: string }[] = [];
  #pushes = 0;
  #requests = 0;
  #rounds = 0;

  constructor(world: SoakEnvironment, random: Random, chosen: readonly Operation[]) {
    this.#world = world;
    this.#random = random;
    this.#operations = chosen;
  }

  get pushes(): number {
    return this.#pushes;
  }

  /** The operations of a round: all, or after the first rounds only those that were not seen often enough. */
  lacking(eachAtLeast: number, copies: number): readonly Operation[] {
    const rare = this.#operations.filter(({ kind }) => this.#world.tally.of(kind) < eachAtLeast);
    const chosen = rare.length === 0 ? this.#operations : rare;
    return Array.from({ length: copies }, () => chosen).flat();
  }

  isLacking(eachAtLeast: number): boolean {
    return this.#operations.some(({ kind }) => this.#world.tally.of(kind) < eachAtLeast);
  }

  /** Deals the operations to new sessions, lets everything settle, and checks. */
  async round(deck: readonly Operation[]): Promise<void> {
    this.#rounds += 1;
    const shuffled = this.#random.shuffled(deck);
    const actors = await Promise.all(apis.map((_, n) => this.#actor(n)));
    await Promise.all(
      actors.map((actor, n) =>
        this.#play(
          actor,
          shuffled.filter((_, index) => index % actors.length === n),
        ),
      ),
    );
    const stuck = await this.#settle(actors);
    await this.#judge(actors, stuck);
    await Promise.all(actors.map((actor) => this.#close(actor)));
    this.#begun.length = 0;
    this.#world.plan.clear();
    this.#world.ledger.clear();
  }

  /** Ends the daemon, and checks for leftovers. */
  async end(): Promise<void> {
    const world = this.#world;
    await world.stop();
    const deadline = Date.now() + goneWithinMs;
    let left = processesWith(world.processMarker);
    while (left.length > 0 && Date.now() < deadline) {
      // The end of a process that another one started is no event.
      await sleep(50);
      left = processesWith(world.processMarker);
    }
    for (const { pid, command } of left) {
      this.failures.push({ kind: "process", message: `process ${pid} is left: ${command}` });
      process.kill(pid, "SIGKILL");
    }
    const contradictions = world.lives
      .errors()
      .filter(({ msg }) => /contradicts|may not go this way/.test(String(msg)));
    for (const line of contradictions) this.failures.push({ kind: "wrong", message: JSON.stringify(line) });
  }

  figures(): Omit<Report, "seed" | "version" | "seconds"> {
    const logged = Map.groupBy(this.#world.lives.errors(), ({ msg }) => String(msg));
    return {
      pushes: this.#pushes,
      faults: this.#world.tally.all(),
      missed: Object.fromEntries(this.#missed),
      ends: Object.fromEntries(this.#ends),
      requests: this.#requests,
      frames: this.#world.seq.frames,
      lives: this.#world.lives.life,
      logged: Object.fromEntries([...logged].map(([message, lines]) => [message, lines.length])),
      violations: this.failures,
    };
  }

  async #actor(n: number): Promise<Actor> {
    const world = this.#world;
    const random = this.#random.fork();
    const { provider, api } = apis[n] as (typeof apis)[number];
    const model = `model-${n}`;
    const called = await world.call("session/create", { cwd: world.cwd, model: `${provider}/${model}` });
    if (called.kind !== "result") throw new Error(`A session could not be created: ${JSON.stringify(called)}`);
    const name = `r${this.#rounds}s${n}`;
    const { sessionId } = called.result;
    world.plan.assign(model, name);
    world.ledger.sawSession(called.result);
    await world.watch(sessionId);
    return new Actor({ name, sessionId, model, api, random, world });
  }

  async #play(actor: Actor, deck: readonly Operation[]): Promise<void> {
    const waiting = deck.map((operation) => ({ operation, tries: 0 }));
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { kind } = next.operation;
      const happened = await this.#run(next.operation, actor);
      if (happened) this.#world.tally.count(kind);
      else if (next.tries + 1 < maxTries) waiting.push({ ...next, tries: next.tries + 1 });
      else this.#missed.set(kind, (this.#missed.get(kind) ?? 0) + 1);
      await actor.quiet();
    }
  }

  /** No operation waits for long; one that does has found a violation. */
  async #run(operation: Operation, actor: Actor): Promise<boolean> {
    this.#begun.push({ at: Date.now(), session: actor.name, kind: operation.kind });
    const giveUp = new AbortController();
    const late = sleep(operationTimeoutMs, "late" as const, { signal: giveUp.signal }).catch(() => "late" as const);
    const first = await Promise.race([operation.run(actor), late]);
    giveUp.abort();
    if (first !== "late") return first;
    const message = `"${operation.kind}" was not through within ${operationTimeoutMs} ms`;
    this.#world.violations.push({ kind: "protocol", message, session: actor.name });
    return false;
  }

  /** Lets everything finish: first by itself, then with prompts. Returns what did not finish by itself. */
  async #settle(actors: readonly Actor[]): Promise<readonly Violation[]> {
    const stuck: Violation[] = [];
    const settle = async (actor: Actor): Promise<void> => {
      if (!(await actor.quiet(settleMs))) {
        const { ledger } = this.#world;
        const message = `nothing moves; the session is ${ledger.session(actor.sessionId)?.state}`;
        stuck.push({ kind: "lost", message, session: actor.name });
        for (const { id } of ledger.open(actor.sessionId)) {
          const latest = ledger.latest(id);
          if (
            latest === undefined ||
            latest.state === "prepared" ||
            isMoving(latest, ledger.session(actor.sessionId)?.state)
          ) {
            stuck.push({ kind: "lost", message, session: actor.name, deliveryId: id });
          }
        }
      }
      for (
        let prompts = 0;
        prompts < 4 && (prompts === 0 || this.#world.ledger.open(actor.sessionId).length > 0);
        prompts += 1
      ) {
        const called = await actor.prompted();
        const answered =
          called.kind === "refused" ? `refused: ${called.error.kind}, ${called.error.message}` : called.kind;
        this.#begun.push({ at: Date.now(), session: actor.name, kind: `prompt at the end (${answered})` });
        await this.#world.ledger.until(
          () => actor.isQuiet() && this.#world.ledger.open(actor.sessionId).length === 0,
          5_000,
        );
      }
    };
    await Promise.all(actors.map(settle));
    return stuck;
  }

  async #judge(actors: readonly Actor[], stuck: readonly Violation[]): Promise<void> {
    const { ledger, plan, seq, violations } = this.#world;
    const final = new Map<string, Delivery | undefined>();
    for (const actor of actors) {
      const own = [...ledger.pushes.values()].filter(({ session }) => session === actor.name);
      for (const { id } of own) final.set(id, await this.#world.get(id));
    }
    const history: History = {
      pushes: [...ledger.pushes.values()],
      sightings: ledger.sightings,
      claims: ledger.claims,
      requests: plan.facts(),
      entries: actors.flatMap(({ sessionId }) => ledger.files(sessionId).flatMap(entriesOf)),
      deaths: ledger.deaths,
      damages: ledger.damages,
      cuts: ledger.cuts,
      final,
    };
    const caseOf = groupByPush(history);
    for (const violation of [...check(history), ...stuck, ...seq.violations.splice(0), ...violations.splice(0)]) {
      const push = history.pushes.find(({ id }) => id === violation.deliveryId);
      const begun = this.#begun.filter(({ session }) => session === violation.session);
      const done = begun.map(({ at, kind }) => `  ${at} began: ${kind}`).join("\n");
      this.failures.push({ ...violation, known: push === undefined ? done : `${caseText(caseOf(push))}\n${done}` });
    }
    for (const { n, session, violations: refusals } of history.requests) {
      for (const message of refusals)
        this.failures.push({ kind: "protocol", message: `request ${n} was refused: ${message}`, session });
    }
    this.#pushes += history.pushes.length;
    this.#requests += history.requests.length;
    for (const delivery of final.values()) {
      const end =
        delivery === undefined
          ? "unknown to the daemon"
          : `${delivery.state}${isEnd(delivery) && delivery.reason !== undefined ? `{${delivery.reason.code}}` : ""}`;
      this.#ends.set(end, (this.#ends.get(end) ?? 0) + 1);
    }
  }

  async #close({ sessionId }: Actor): Promise<void> {
    await this.#world.call("session/close", { sessionId });
    this.#world.unwatch(sessionId);
  }
}
