import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, type TestContext, vi } from "vitest";
import type { Attempt, Delivery, DeliveryHandle, PushParams, SessionHandle } from "../../../client/index.ts";
import { isTerminal } from "../../../protocol/delivery-progress.ts";
import type { ScriptedModel } from "../../../provider/agent-dir.ts";
import type { LogEntry } from "../../../provider/log.ts";
import { answer, type Reply } from "../../../provider/reply.ts";
import type { Responder, Source } from "../../../provider/script.ts";
import type { ScriptedProvider } from "../../../provider/server.ts";
import { type KillableStage, startKillableStage } from "../../helpers/killable-stage.ts";
import { patience } from "../../helpers/patience.ts";
import { type Stage, startStage } from "../../helpers/stage.ts";
import type { CellResult } from "../../setup/matrix-reporter.ts";
import { entriesOf } from "../../soak/transcripts.ts";
import { type Barrier, Barriers } from "./barriers.ts";

/** The provider of a session's model: the scripted one by an API, or the one of the extension `soak-pi`. */
export type Api = "scripted" | "scripted-anthropic" | "scripted-google" | "eager";

export interface MatrixStageOptions {
  /** Whether the daemon is a separate process, which `stage.restart()` kills. */
  readonly isKillable?: boolean;
  /** The text of the daemon's configuration file. Default: no file. */
  readonly config?: string;
  /** Names of fixture extensions that pi loads after the helper. */
  readonly extensions?: readonly string[];
  /** Additional environment variables for pi. */
  readonly env?: (provider: ScriptedProvider) => Readonly<Record<string, string>>;
  /** Settings of pi in addition to those for tests. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Fields of every model. */
  readonly model?: Omit<ScriptedModel, "id">;
  /** How many cells can have their own session: each start of pi reads all their models. Default: 160. */
  readonly sessions?: number;
}

const defaultSessions = 160;
const polled = { ...patience, interval: 15 };
const fixtures = join(import.meta.dirname, "..", "..", "fixtures", "extension");

/** The replies of each model, so that concurrent sessions do not take each other's. */
export class Replies {
  readonly #steps = new Map<string, Source[]>();
  readonly #summaries = new Map<string, Source[]>();
  readonly #warmings = new Map<string, Source[]>();

  add(model: string, ...steps: readonly Source[]): void {
    this.#steps.set(model, [...(this.#steps.get(model) ?? []), ...steps]);
  }

  addSummary(model: string, step: Source): void {
    this.#summaries.set(model, [...(this.#summaries.get(model) ?? []), step]);
  }

  addWarming(model: string, step: Source): void {
    this.#warmings.set(model, [...(this.#warmings.get(model) ?? []), step]);
  }

  left(model: string): number {
    return this.#steps.get(model)?.length ?? 0;
  }

  readonly respond: Responder = async (request) => {
    const own = isSummary(request) ? this.#summaries : this.#steps;
    const step = (request.isWarming ? this.#warmings : own).get(request.model ?? "")?.shift();
    if (step === undefined) return answer("Understood.");
    return typeof step === "function" ? await step(request) : step;
  };
}

/** Whether pi asks for a summary, to compact a transcript. */
function isSummary(request: LogEntry): boolean {
  const [first] = request.messages;
  return first?.role === "system" && first.texts.some((text) => /summariz/i.test(text));
}

/** A stage whose sessions do not affect each other: each has its own model and thereby its own script. */
export class MatrixStage implements AsyncDisposable {
  readonly stage: Stage | KillableStage;
  readonly replies: Replies;
  readonly barriers: Barriers;
  readonly #free = new Map<Api, { readonly sessionId: string; readonly model: string }[]>();
  #models = 0;
  #cells = 0;

  private constructor(stage: Stage | KillableStage, replies: Replies, barriers: Barriers) {
    this.stage = stage;
    this.replies = replies;
    this.barriers = barriers;
  }

  static async open(options: MatrixStageOptions = {}): Promise<MatrixStage> {
    const replies = new Replies();
    const settings = {
      compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 100 },
      ...options.settings,
    };
    const models = Array.from({ length: options.sessions ?? defaultSessions }, (_, n) => ({
      ...options.model,
      id: `model-${n}`,
    }));
    const { config, env, isKillable } = options;
    const start = isKillable === true ? startKillableStage : startStage;
    const stage = await start({
      provider: { otherwise: replies.respond },
      agent: { settings, models },
      ...(config === undefined ? {} : { config }),
      ...(env === undefined ? {} : { env }),
    });
    const directory = join(stage.agentDir.path, "extensions");
    mkdirSync(directory);
    for (const name of options.extensions ?? []) {
      const source = JSON.stringify(join(fixtures, `${name}.ts`));
      writeFileSync(join(directory, `${name}.ts`), `export { default } from ${source};\n`);
    }
    return new MatrixStage(stage, replies, await Barriers.open());
  }

  /** A cell in a new session. */
  async cell(api: Api = "scripted", options: { readonly model?: string } = {}): Promise<Cell> {
    const model = options.model ?? `model-${this.#models++}`;
    const session = await this.stage.client.createSession({ cwd: this.stage.cwd, model: `${api}/${model}` });
    return this.#cell(api, session.id, model);
  }

  /** A cell in the idle session of a {@link Cell.done} cell, if there is one: starting pi takes most of the time. */
  async cellAnywhere(api: Api): Promise<Cell> {
    const free = this.#free.get(api)?.pop();
    return free === undefined ? await this.cell(api) : this.#cell(api, free.sessionId, free.model);
  }

  #cell(api: Api, sessionId: string, model: string): Cell {
    this.#cells += 1;
    const release = (): void => {
      this.#free.set(api, [...(this.#free.get(api) ?? []), { sessionId, model }]);
    };
    return new Cell({ world: this, sessionId, model, n: this.#cells, release });
  }

  barrier(): Barrier {
    return this.barriers.make();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stage[Symbol.asyncDispose]();
    await this.barriers[Symbol.asyncDispose]();
  }
}

interface CellOptions {
  readonly world: MatrixStage;
  readonly sessionId: string;
  readonly model: string;
  readonly n: number;
  readonly release: () => void;
}

/** One push whose whole history is recorded: its states, and where its text was seen. */
export class Cell implements AsyncDisposable {
  readonly world: MatrixStage;
  readonly model: string;
  /** The text of the push, which occurs nowhere else. */
  readonly text: string;
  readonly #sessionId: string;
  readonly #release: () => void;
  /** The newest request when the cell began. */
  readonly #begin: number;
  readonly #afterDeath: (() => void)[] = [];
  #isDone = false;

  constructor({ world, sessionId, model, n, release }: CellOptions) {
    this.world = world;
    this.model = model;
    this.text = `Job ${n} of the night has ended: three findings.`;
    this.#sessionId = sessionId;
    this.#release = release;
    this.#begin = world.stage.provider.requests.at(-1)?.n ?? 0;
  }

  /** Through the client of the current daemon. */
  get session(): SessionHandle {
    return this.world.stage.client.session(this.#sessionId);
  }

  add(...steps: readonly (Reply | Source)[]): void {
    this.world.replies.add(this.model, ...steps);
  }

  push(params: Partial<PushParams> = {}): DeliveryHandle {
    return this.session.push({ customType: "job", content: this.text, ...params });
  }

  /** The requests of the conversation since the cell began, without those for summaries and for warming. */
  get requests(): readonly LogEntry[] {
    return this.world.stage.provider.requests.filter(
      (request) => request.n > this.#begin && request.model === this.model && !isSummary(request) && !request.isWarming,
    );
  }

  /** The number of requests for a summary. */
  get summaries(): number {
    const { requests } = this.world.stage.provider;
    return requests.filter((request) => request.n > this.#begin && request.model === this.model && isSummary(request))
      .length;
  }

  /** How often each of them carries the push, as a user's message. */
  get carried(): readonly number[] {
    return this.requests.map((request) => request.countText(this.text, { roles: ["user"] }));
  }

  /** The number of entries of pi's session file that carry the delivery. */
  async entries(deliveryId: string): Promise<number> {
    return this.entriesIn((await this.session.get()).file, deliveryId);
  }

  entriesIn(file: string, deliveryId: string): number {
    return entriesOf(file).filter((entry) => entry.deliveryId === deliveryId).length;
  }

  /** Waits until the delivery is in one of these states. */
  async until(delivery: DeliveryHandle, ...states: readonly Delivery["state"][]): Promise<Delivery> {
    const now = await vi.waitFor(async () => {
      const found = await delivery.get();
      // A final state never changes again.
      if (!isTerminal(found)) expect(found.state).toBeOneOf([...states]);
      return found;
    }, polled);
    expect(now.state).toBeOneOf([...states]);
    return now;
  }

  async idle(): Promise<void> {
    await vi.waitFor(async () => expect((await this.session.get()).state).toBe("idle"), polled);
  }

  /** Waits until the delivery stops changing by itself, and returns it. */
  async rest(delivery: DeliveryHandle, ...states: readonly Delivery["state"][]): Promise<Delivery> {
    const isAtRest = (now: Delivery): boolean =>
      isTerminal(now) || now.state === "parked" || states.includes(now.state);
    await vi.waitFor(async () => expect(await delivery.get()).toSatisfy(isAtRest), polled);
    return await delivery.get();
  }

  /** Cleanup after a process has died, before the next one continues. */
  afterDeath(act: () => void): void {
    this.#afterDeath.push(act);
  }

  runAfterDeath(): void {
    for (const act of this.#afterDeath.splice(0)) act();
  }

  /** Waits until the daemon knows that this child has ended. */
  async died(generation: number): Promise<void> {
    await vi.waitFor(async () => {
      const session = await this.session.get();
      expect(session.state === "crashed" || session.generation > generation).toBe(true);
    }, polled);
    this.runAfterDeath();
  }

  /** A conversation that is long enough to be compacted. */
  async addHistory(): Promise<void> {
    for (const _turn of [1, 2]) {
      await this.session.promptAndWait("A long story. ".repeat(100));
      await this.idle();
    }
  }

  async event(type: string): Promise<{ readonly seen: Promise<void> }> {
    const events = this.session.events();
    await events.ready;
    const seen = (async () => {
      for await (const { event } of events) if (event.type === type) return;
    })();
    seen.catch(() => {});
    return { seen };
  }

  /** No request of the cell may be one that a real provider would refuse. */
  expectLawful(): void {
    for (const { violations } of this.requests) expect(violations).toEqual([]);
  }

  /** Reports that everything is in order: another cell may have the session. */
  done(): void {
    expect(this.world.replies.left(this.model)).toBe(0);
    this.#isDone = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isDone) this.#release();
    else await this.session.close().catch(() => {});
  }
}

/** Leaves the result of a cell for the reporter that prints the matrix. */
export function note({ meta }: Pick<TestContext["task"], "meta">, ...cells: readonly CellResult[]): void {
  meta.cells = [...(meta.cells ?? []), ...cells];
}

/** State and reason: `parked run_failed`. */
export function endOf({ state, reason }: Delivery): string {
  return reason === undefined ? state : `${state} ${reason.code}`;
}

/** Each attempt in a few words: `failed 529 confirmed`, `delivered headers 200 confirmed`. */
export function attemptsOf({ attempts }: Delivery): readonly string[] {
  return attempts.map(({ outcome, evidence, status, payload }: Attempt) =>
    [outcome ?? "open", evidence, status, payload].filter((word) => word !== undefined).join(" "),
  );
}
