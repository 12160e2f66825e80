import { setTimeout as sleep } from "node:timers/promises";
import type { DeliverAs, Delivery, DeliveryState } from "../../protocol/delivery.ts";
import type { Params } from "../../protocol/methods.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import { Gate } from "../../provider/gate.ts";
import type { LogEntry } from "../../provider/log.ts";
import { answer, call, delayed, hold, type Reply } from "../../provider/reply.ts";
import { isEnd } from "./checker.ts";
import type { Called, SoakEnvironment } from "./environment.ts";
import type { SoakApi } from "./history.ts";
import type { Pushed } from "./ledger.ts";
import type { Planned } from "./provider-plan.ts";
import type { Random } from "./random.ts";

export interface PushOptions {
  readonly deliverAs?: DeliverAs;
  readonly triggerTurn?: boolean;
  readonly onAbort?: "park" | "drop";
  readonly onClearQueue?: "keep" | "drop";
  readonly expiresAfterMs?: number;
  readonly size?: "small" | "large" | "any";
}

/** Enough for immediate effects on a busy machine, in milliseconds; after that an effect counts as missing. */
const soonMs = 8_000;
const tinyPng = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
/** Too large for pi's own line, so the frame goes through a file. */
const largeBytes = 300 * 1024;
const largeShare = 0.02;

/** A session of the run, and the actions on it. It has its own random numbers. */
export class Actor {
  readonly name: string;
  readonly sessionId: string;
  readonly model: string;
  readonly api: SoakApi;
  readonly random: Random;
  readonly world: SoakEnvironment;
  #pushes = 0;
  #prompts = 0;

  constructor(options: {
    readonly name: string;
    readonly sessionId: string;
    readonly model: string;
    readonly api: SoakApi;
    readonly random: Random;
    readonly world: SoakEnvironment;
  }) {
    this.name = options.name;
    this.sessionId = options.sessionId;
    this.model = options.model;
    this.api = options.api;
    this.random = options.random;
    this.world = options.world;
  }

  /** The params of a new push, which the ledger records. */
  newPush(options: PushOptions = {}): Pushed {
    const { random } = this;
    this.#pushes += 1;
    const id = `${this.name}.p${this.#pushes}`;
    const isLarge = options.size === "large" || (options.size === "any" && random.chance(largeShare));
    const length = isLarge ? largeBytes : random.integer(0, 1_200);
    const text = `[[${id}]] ${word(random)
      .repeat(Math.ceil(length / 8))
      .slice(0, length)}`;
    const image = { type: "image" as const, data: tinyPng, mimeType: "image/png" };
    const content = random.chance(0.25)
      ? [{ type: "text" as const, text }, ...(random.chance(0.5) ? [image] : [])]
      : text;
    const { deliverAs = random.pick(["steer", "steer", "followUp", "nextTurn"] as const) } = options;
    const params: Params<"delivery/push"> = {
      sessionId: this.sessionId,
      customType: "soak",
      content,
      deliveryId: id,
      deliverAs,
      triggerTurn: options.triggerTurn ?? random.chance(0.8),
      onAbort: options.onAbort ?? (random.chance(0.2) ? "drop" : "park"),
      onClearQueue: options.onClearQueue ?? (random.chance(0.2) ? "drop" : "keep"),
      ...(random.chance(0.2) ? { details: { n: this.#pushes } } : {}),
      ...(random.chance(0.2) ? { display: false } : {}),
      ...(options.expiresAfterMs === undefined ? {} : { expiresAfterMs: options.expiresAfterMs }),
    };
    const pushed: Pushed = {
      id,
      session: this.name,
      sessionId: this.sessionId,
      text,
      api: this.api,
      answer: "unsure",
      params,
    };
    this.world.ledger.pushes.set(id, pushed);
    return pushed;
  }

  /** Pushes, and repeats the call with the same id until the daemon answers. */
  async push(options: PushOptions = {}): Promise<Pushed> {
    const pushed = this.newPush({ size: "any", ...options });
    await this.bring(pushed);
    return pushed;
  }

  async bring(pushed: Pushed): Promise<void> {
    for (;;) {
      const peer = await this.world.peer(this.random);
      const askedAt = Date.now();
      const called = await this.world.callBy(peer, "delivery/push", pushed.params as Params<"delivery/push">);
      if (called.kind === "result") {
        pushed.answer = "accepted";
        this.world.ledger.saw({
          at: Date.now(),
          askedAt,
          from: "delivery/push",
          life: peer.life,
          delivery: called.result,
        });
        return;
      }
      if (called.kind === "refused" && called.error.kind !== "shutting_down") {
        pushed.answer = "refused";
        return;
      }
      // A daemon that is away is asked again, without a busy loop.
      await sleep(5);
    }
  }

  /** Pushes that want an agent: at least one. */
  async pushSome(most = 2): Promise<readonly Pushed[]> {
    const first = this.push({ deliverAs: this.random.pick(["steer", "followUp"]), triggerTurn: true });
    const others = Array.from({ length: this.random.integer(0, most - 1) }, () => this.push());
    return await Promise.all([first, ...others]);
  }

  async prompt(text?: string): Promise<boolean> {
    return (await this.prompted(text)).kind === "result";
  }

  /** Prompts, and returns the outcome of the call. */
  async prompted(text?: string): Promise<Called<unknown>> {
    this.#prompts += 1;
    const said = text ?? `Prompt ${this.name}.${this.#prompts}.`;
    const params = { sessionId: this.sessionId, text: said, ifRunning: "followUp" as const };
    return await this.world.call("session/prompt", params, this.random);
  }

  /** Aborts, and repeats the call until the daemon answers: the run may have survived a daemon that has lost the call. */
  async abort(): Promise<void> {
    for (;;) {
      const called = await this.world.call("session/abort", { sessionId: this.sessionId }, this.random);
      if (called.kind === "result") this.world.ledger.claimed("session/abort", called.result.deliveries);
      if (called.kind === "result" || (called.kind === "refused" && called.error.kind !== "shutting_down")) return;
      // As for a push: without a busy loop.
      await sleep(5);
    }
  }

  command(command: Params<"session/command">["command"]): Promise<Called<unknown>> {
    return this.world.call("session/command", { sessionId: this.sessionId, command }, this.random);
  }

  plan(reply: Reply): Planned {
    return this.world.plan.add(this.model, reply);
  }

  /**
   * The request that takes a planned reply. If none does in time, the reply is withdrawn: a later request must not get
   * it.
   */
  async taken(planned: Planned, withinMs = soonMs): Promise<LogEntry | undefined> {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => {
      this.world.plan.withdraw(this.model, planned);
      resolve(undefined);
    }, withinMs);
    try {
      return await Promise.race([planned.taken, promise]);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Brings the agent into a state in which the test acts, and keeps it there until the returned function is called. */
  async enter(state: "idle" | "streaming" | "waiting" | "inTool"): Promise<() => void> {
    if (state === "idle") return () => {};
    const gate = new Gate();
    const open = (): void => gate.open();
    if (state === "inTool" && this.api !== "eager") {
      const seconds = this.random.pick(["0.05", "0.15", "0.3"]);
      const planned = this.plan(answer("A tool.", call("bash", { command: `sleep ${seconds}; echo slept` })));
      if (!(await this.prompt())) return open;
      await this.taken(planned);
      return open;
    }
    const planned = this.plan(
      state === "waiting" ? delayed(hold(gate), answer("Waited.")) : answer("Stre", hold(gate), "aming."),
    );
    if (!(await this.prompt())) return open;
    if ((await this.taken(planned)) !== undefined) await this.soon(gate.reached);
    return open;
  }

  /** In a random state. */
  enterAny(): Promise<() => void> {
    return this.enter(this.random.pick(["idle", "idle", "streaming", "waiting", "inTool"]));
  }

  /** Resolves with whether the promise resolves soon. */
  async soon(promise: Promise<unknown>, withinMs = soonMs): Promise<boolean> {
    const timeout = new AbortController();
    const late = sleep(withinMs, false, { signal: timeout.signal }).catch(() => false);
    const first = await Promise.race([
      promise.then(
        () => true,
        () => false,
      ),
      late,
    ]);
    timeout.abort();
    return first;
  }

  /** Whether a push soon reaches a state, or has been in it. */
  async reached(pushed: Pushed, state: DeliveryState): Promise<boolean> {
    const { ledger } = this.world;
    const isIn = (): boolean => ledger.latest(pushed.id)?.history.some((at) => at.state === state) === true;
    const isOver = (): boolean => {
      const latest = ledger.latest(pushed.id);
      return latest !== undefined && isEnd(latest);
    };
    await ledger.until(() => isIn() || isOver(), soonMs);
    return isIn();
  }

  pause(mostMs: number): Promise<void> {
    return sleep(this.random.integer(0, mostMs));
  }

  childPid(): number | undefined {
    return this.world.ledger.session(this.sessionId)?.pid;
  }

  /** Sends a signal to the session's pi. Returns whether there was one. */
  signalChild(signal: NodeJS.Signals): boolean {
    const pid = this.childPid();
    if (pid === undefined) return false;
    if (signal === "SIGKILL") this.world.ledger.died(this);
    try {
      process.kill(pid, signal);
    } catch {
      return false;
    }
    return true;
  }

  /** Resolves when the daemon has reported that the child with this pid is gone. */
  childGone(pid: number | undefined): Promise<boolean> {
    return this.world.ledger.until(() => this.childPid() !== pid || pid === undefined, soonMs);
  }

  /**
   * Resolves when nothing changes by itself any more, or after a time limit. Untaken planned replies are then dropped.
   */
  async quiet(withinMs = 3_000): Promise<boolean> {
    const isQuiet = await this.world.ledger.until(() => this.isQuiet(), withinMs);
    this.world.plan.withdraw(this.model);
    return isQuiet;
  }

  isQuiet(): boolean {
    const { ledger } = this.world;
    const state = ledger.session(this.sessionId)?.state;
    if (state === "running" || state === "starting") return false;
    return ledger.open(this.sessionId).every((push) => {
      const latest = ledger.latest(push.id);
      if (latest === undefined) return push.answer === "unsure";
      if (latest.state === "parked") return true;
      return latest.state !== "prepared" && latest.state !== "delivered" && !isMoving(latest, state);
    });
  }
}

/**
 * Whether a push makes progress without further action. One for the next turn wakes no session whose pi has
 * ended, as with a killed daemon: the next prompt brings both. One that a failed or aborted run has left starts no run when
 * another push takes it into the transcript; it does when a client sends it again.
 */
export function isMoving(
  { state, deliverAs, triggerTurn, history }: Delivery,
  session: SessionInfo["state"] | undefined,
): boolean {
  const isAsleep = session === "hibernated" || session === "crashed";
  if (state === "accepted") return deliverAs !== "nextTurn" || !isAsleep;
  const wasLeft = history.at(-2)?.state === "parked" && history.at(-1)?.by === undefined;
  if (state === "inserted" && wasLeft) return false;
  return (state === "held" || state === "inserted") && deliverAs !== "nextTurn" && triggerTurn;
}

function word(random: Random): string {
  return Math.floor(random.next() * 0x7fff_ffff)
    .toString(36)
    .padStart(7, "x")
    .concat(" ");
}
