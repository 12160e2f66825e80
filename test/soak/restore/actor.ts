import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type {
  Client,
  Delivery,
  DeliveryHandle,
  PromptOptions,
  PushParams,
  SessionHandle,
  SettledRun,
} from "../../../client/index.ts";
import { ConnectionClosedError } from "../../../client/local-errors.ts";
import { isTerminal } from "../../../protocol/delivery-progress.ts";
import { WireError } from "../../../protocol/errors.ts";
import type { LogEntry } from "../../../provider/log.ts";
import type { Reply } from "../../../provider/reply.ts";
import { LogRecorder } from "../../helpers/log-recorder.ts";
import type { RestoreStage } from "../../helpers/restore-stage.ts";
import { SessionRecord } from "../../helpers/session-record.ts";
import type { Random } from "../random.ts";
import { entriesOf } from "../transcripts.ts";

/** How long a busy pi on a loaded machine may take to answer a daemon, in milliseconds. */
const answerTimeoutMs = 60_000;

/** What a call, or the end of a session's work, had to be and was not. */
export class Unexpected extends Error {}

/** The replies to each model's requests, in order. A request without one is a fault. */
export class Script {
  readonly #replies = new Map<string, Reply[]>();
  readonly #counts = new Map<string, number>();

  add(model: string, ...replies: readonly Reply[]): void {
    this.#replies.set(model, [...(this.#replies.get(model) ?? []), ...replies]);
    this.#counts.set(model, this.count(model) + replies.length);
  }

  /** How many replies a model's requests were given, or will be. */
  count(model: string): number {
    return this.#counts.get(model) ?? 0;
  }

  left(model: string): number {
    return this.#replies.get(model)?.length ?? 0;
  }

  readonly respond = (request: LogEntry): Reply => {
    const reply = this.#replies.get(request.model ?? "")?.shift();
    if (reply === undefined) throw new Error("no request was expected");
    return reply;
  };
}

export interface ActorOptions {
  readonly name: string;
  readonly stage: RestoreStage;
  readonly client: Client;
  readonly script: Script;
  readonly model: string;
  readonly random: Random;
}

/** One session with its three readers, and what was done in it. */
export class Actor implements AsyncDisposable {
  readonly name: string;
  readonly random: Random;
  readonly session: SessionHandle;
  readonly record: SessionRecord;
  readonly fast: LogRecorder;
  readonly slow: LogRecorder;
  /** The one that stays away for a long time. */
  readonly late: LogRecorder;
  readonly pid: number;
  readonly generation: number;
  readonly file: string;
  /** The round that is under way. */
  round = "";
  readonly #stage: RestoreStage;
  readonly #script: Script;
  readonly #model: string;
  readonly #firstRequest: number;
  readonly #firstReply: number;
  readonly #responder: { stop(): void };
  /** How often each text must be a user's message of the transcript. */
  readonly #prompted = new Map<string, number>();
  /** The text of each push. */
  readonly #pushes = new Map<string, string>();
  #aborts = 0;
  /** How many prompts were reported as lost, and sent again. */
  #lost = 0;
  #texts = 0;

  private constructor(options: ActorOptions, session: SessionHandle) {
    const { info } = session;
    if (info?.pid === undefined) throw new Unexpected("a new session has no pi");
    this.name = options.name;
    this.random = options.random;
    this.session = session;
    this.pid = info.pid;
    this.generation = info.generation;
    this.file = info.file;
    this.#stage = options.stage;
    this.#script = options.script;
    this.#model = options.model;
    this.#firstRequest = options.stage.provider.requests.at(-1)?.n ?? 0;
    this.#firstReply = options.script.count(options.model);
    const record = new SessionRecord(session.id);
    this.record = record;
    const listening = () => options.stage.listening;
    this.fast = new LogRecorder({ name: "fast", record, listening });
    this.slow = new LogRecorder({
      name: "slow",
      record,
      listening,
      pauses: { everyMessages: 100, ms: 60 },
      allows: ({ reason, onlyDeltas }) => reason === "slow_reader" && onlyDeltas === true,
    });
    this.late = new LogRecorder({
      name: "late",
      record,
      listening,
      allows: ({ from, to, onlyDeltas }) => onlyDeltas === true && record.hasOnlyDeltas(from, to),
    });
    const responder = session.onDialog(async () => {
      await this.pause(300);
      return { confirmed: true };
    });
    responder.ready.catch(() => {});
    this.#responder = responder;
  }

  static async open(options: ActorOptions): Promise<Actor> {
    const { client, stage, model } = options;
    const session = await client.createSession({ cwd: stage.cwd, model: `scripted/${model}` });
    return new Actor(options, session);
  }

  /** A text that occurs nowhere else. */
  text(what: string): string {
    this.#texts += 1;
    return `${what} ${this.name}.${this.#texts}.`;
  }

  add(...replies: readonly Reply[]): void {
    this.#script.add(this.#model, ...replies);
  }

  /** Prompts, and resolves when its run has settled. A prompt that pi never had is sent again. */
  async prompt(text: string, options: PromptOptions = {}): Promise<SettledRun> {
    this.#prompted.set(text, (this.#prompted.get(text) ?? 0) + 1);
    for (;;) {
      try {
        const run = await this.session.runUntilSettled(text, options);
        if (run.state !== "lost") return run;
      } catch (error) {
        if (!(error instanceof WireError) || error.kind !== "prompt_lost") throw error;
      }
      this.#lost += 1;
    }
  }

  async promptAndSettle(text: string, options: PromptOptions = {}): Promise<void> {
    const { outcome, state, errorMessage } = await this.prompt(text, options);
    if (outcome !== "settled") throw new Unexpected(`the prompt "${text}" ended ${outcome}, ${state}: ${errorMessage}`);
  }

  push(params: Partial<PushParams> = {}): DeliveryHandle {
    const content = this.text("Push");
    const deliveryId = content.replaceAll(/[^0-9A-Za-z]+/g, "-").replace(/-$/, "");
    this.#pushes.set(deliveryId, content);
    return this.session.push({ customType: "job", content, deliveryId, ...params });
  }

  /** Waits until a push is in this state. */
  async until(push: DeliveryHandle, state: Delivery["state"]): Promise<void> {
    for await (const now of push.updates()) {
      if (now.state === state) return;
      if (isTerminal(now)) throw new Unexpected(`${push.id} became ${now.state} instead of ${state}`);
    }
    throw new Unexpected(`${push.id} never became ${state}`);
  }

  /** Aborts the run; repeats the call if its answer is lost. */
  async abort(): Promise<void> {
    this.#aborts += 1;
    for (;;) {
      try {
        await this.session.abort();
        return;
      } catch (error) {
        if (!isAnswerLost(error)) throw error;
      }
    }
  }

  /** Sends a parked push again; repeats the call if its answer is lost. */
  async resend(push: DeliveryHandle): Promise<void> {
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        await push.resend();
        return;
      } catch (error) {
        if (isAnswerLost(error)) continue;
        if (isRepeated && error instanceof WireError && error.kind === "wrong_state") return;
        throw error;
      }
    }
  }

  pause(mostMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    setTimeout(resolve, this.random.integer(0, mostMs));
    return promise;
  }

  /** Checks that the session is still the same, in the same process. While pi has not answered it is `starting`. */
  async checkIdentity(): Promise<void> {
    const deadline = performance.now() + answerTimeoutMs;
    let info = await this.session.get();
    while (info.state === "starting" && performance.now() < deadline) {
      // The daemon can end meanwhile, and its events with it: the state is asked for again.
      await sleep(50);
      info = await this.session.get();
    }
    const { pid, generation, state, epoch } = info;
    const { record } = this;
    if (pid !== this.pid) record.say("state", `its pi was ${this.pid} and is ${pid}; the session is ${state}`);
    if (generation !== this.generation) record.say("state", `its generation is ${generation}`);
    if (record.epoch !== undefined && epoch !== record.epoch) record.say("state", `its log is ${epoch}`);
  }

  /** Lets the readers get everything, and checks all that was recorded. Nothing may be under way. */
  async check(): Promise<void> {
    const { record, session } = this;
    await session.waitForIdle();
    await record.untilEnds(answerTimeoutMs);
    this.late.join();
    const { cursor, pendingDialogs, lostPrompts } = await session.get();
    await Promise.all([this.fast, this.slow, this.late].map((reader) => reader.reached(cursor)));
    await using replay = new LogRecorder({
      name: "a replay at the end",
      record,
      listening: () => this.#stage.listening,
      allows: ({ from, to, onlyDeltas }) => onlyDeltas === true && record.hasOnlyDeltas(from, to),
    });
    await replay.reached(cursor);
    await this.checkIdentity();
    record.checkNumbers();
    record.checkEvents(this.#stage.records(this.pid));
    record.checkReceipts();
    record.checkEnds();
    record.checkStates();
    if (pendingDialogs.length > 0) record.say("state", `${pendingDialogs.length} dialogs are left`);
    if (lostPrompts.length !== this.#lost) {
      record.say("receipt", `${lostPrompts.length} prompts are reported as lost, and ${this.#lost} to their clients`);
    }
    this.#checkTranscript();
    this.#checkRequests();
    await this.#checkDeliveries();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#responder.stop();
    await Promise.all([this.fast, this.slow, this.late].map((reader) => reader[Symbol.asyncDispose]()));
  }

  #checkTranscript(): void {
    const said = new Map<string, number>();
    for (const line of readFileSync(this.file, "utf8").split("\n")) {
      if (line === "") continue;
      const { type, message } = JSON.parse(line) as { readonly type: string; readonly message?: Message };
      if (type !== "message" || message?.role !== "user") continue;
      const text = textOf(message);
      said.set(text, (said.get(text) ?? 0) + 1);
    }
    for (const text of new Set([...said.keys(), ...this.#prompted.keys()])) {
      const [is, must] = [said.get(text) ?? 0, this.#prompted.get(text) ?? 0];
      if (is !== must)
        this.record.say("receipt", `"${text.slice(0, 80)}" is ${is} times in the transcript, not ${must}`);
    }
    const entries = entriesOf(this.file);
    for (const id of this.#pushes.keys()) {
      const count = entries.filter(({ deliveryId }) => deliveryId === id).length;
      if (count !== 1) this.record.say("receipt", `${id} is ${count} times in the transcript`);
    }
  }

  #checkRequests(): void {
    const { record } = this;
    const requests = this.#stage.provider.requests.filter(
      ({ n, model }) => n > this.#firstRequest && model === this.#model,
    );
    const must = this.#script.count(this.#model) - this.#firstReply;
    if (requests.length !== must) record.say("receipt", `the provider got ${requests.length} requests, not ${must}`);
    const bodies = Map.groupBy(requests, ({ bodySha256 }) => bodySha256);
    for (const [, same] of bodies) {
      if (same.length > 1) record.say("receipt", `the requests ${same.map(({ n }) => n).join(", ")} are the same`);
    }
    for (const { n, violations } of requests) {
      for (const violation of violations) record.say("receipt", `request ${n}: ${violation}`);
    }
    const closed = requests.filter(({ outcome }) => outcome !== "answered");
    if (closed.length > this.#aborts) {
      record.say("receipt", `requests ended ${closed.map(({ n, outcome }) => `${n} ${outcome}`).join(", ")}`);
    }
    const last = requests.at(-1);
    for (const [id, content] of this.#pushes) {
      const count = last?.countText(content, { roles: ["user"] });
      if (count !== 1) record.say("receipt", `the last request has ${id} ${count} times`);
    }
  }

  async #checkDeliveries(): Promise<void> {
    const told = this.record.lastDeliveries();
    for (const id of this.#pushes.keys()) {
      const now = await this.session.delivery(id).get();
      const last = told.get(id);
      if (now.state !== "answered") this.record.say("receipt", `${id} is ${now.state} at the end`);
      if (JSON.stringify(last) !== JSON.stringify(now)) {
        this.record.say("receipt", `${id} is ${now.state}, and was told as ${JSON.stringify(last)?.slice(0, 200)}`);
      }
    }
  }
}

/** Whether a daemon ended before it answered. A call of a closed client has no answer, and repeating it would not end. */
function isAnswerLost(error: unknown): boolean {
  return error instanceof ConnectionClosedError && error.method !== undefined;
}

interface Message {
  readonly role: string;
  readonly content: string | readonly { readonly type: string; readonly text?: string }[];
}

function textOf({ content }: Message): string {
  return typeof content === "string" ? content : content.map(({ text = "" }) => text).join("");
}
