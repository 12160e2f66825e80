import { randomUUID } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import type { Delivery } from "../../protocol/delivery.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Gap } from "../../protocol/event.ts";
import type { MethodName, Params, Result } from "../../protocol/methods.ts";
import { createAgentDir } from "../../provider/agent-dir.ts";
import { type ScriptedProvider, startProvider } from "../../provider/server.ts";
import { signal } from "../../server/pi/processes.ts";
import { DaemonLives } from "../helpers/daemon-lives.ts";
import { processesWith } from "../setup/processes.ts";
import type { Violation } from "./history.ts";
import { Ledger } from "./ledger.ts";
import { ConnectionLost, Peer } from "./peer.ts";
import { ProviderPlan } from "./provider-plan.ts";
import type { Random } from "./random.ts";
import { SeqWatch } from "./seq-watch.ts";
import { Tally } from "./tally.ts";

export interface SoakEnvironmentOptions {
  /** pi's program. */
  readonly pi: string;
  /** The checkout whose daemon and helper are run. Default: those under test. */
  readonly source?: string;
}

/** How a call of the soak ended. */
export type Called<T> =
  | { readonly kind: "result"; readonly result: T }
  | { readonly kind: "refused"; readonly error: WireError }
  /** The connection ended first. */
  | { readonly kind: "cut" };

/** The params of numbered notifications of a session's log. */
interface NumberedParams {
  readonly sessionId: string;
  readonly seq: number;
  readonly firstSeq?: number;
}

export const checkout = join(import.meta.dirname, "..", "..");
const modelCount = 8;
const peerCount = 3;
/** A call of the soak that waits longer than this is a fault, in milliseconds. */
const callTimeoutMs = 90_000;

/** The surroundings of a run: the provider and the clients in this process, the daemon and pi in their own. */
export class SoakEnvironment implements AsyncDisposable {
  readonly root: string;
  readonly cwd: string;
  readonly stateDir: string;
  readonly provider: ScriptedProvider;
  readonly plan: ProviderPlan;
  readonly ledger = new Ledger();
  readonly seq = new SeqWatch();
  readonly tally = new Tally();
  readonly lives: DaemonLives;
  readonly violations: Violation[] = [];
  /** NAME=value in the environment of every process of this run. */
  readonly processMarker: string;
  readonly #peers: Peer[] = [];
  readonly #subscribed = new Set<string>();
  readonly #lastSeq = new Map<string, number>();
  #daemon: DaemonFile | undefined;
  #up = Promise.withResolvers<void>();
  #replacing: Promise<unknown> = Promise.resolve();
  #peerNames = 0;

  private constructor(
    root: string,
    provider: ScriptedProvider,
    plan: ProviderPlan,
    options: SoakEnvironmentOptions,
    env: NodeJS.ProcessEnv,
  ) {
    this.root = root;
    this.cwd = join(root, "project");
    this.stateDir = join(root, "state");
    this.provider = provider;
    this.plan = plan;
    this.processMarker = `PI_RPCD_SOAK_RUN=${randomUUID()}`;
    const [name = "", value] = this.processMarker.split("=");
    mkdirSync(this.cwd);
    this.lives = new DaemonLives({
      source: options.source,
      stateDir: this.stateDir,
      cwd: this.cwd,
      env: {
        ...process.env,
        ...env,
        PI_RPCD_PI: options.pi,
        PI_RPCD_VALIDATE: "1",
        // A pi without a daemon stays, so that one that was left is found.
        PI_RPCD_ORPHAN_IDLE_MS: "86400000",
        [name]: value,
      },
      onFault: (message) => {
        this.violations.push({ kind: "process", message });
        // Without one the run could not continue.
        if (!this.lives.isAlive) void this.replaceDaemon("SIGKILL");
      },
    });
  }

  static async open(options: SoakEnvironmentOptions): Promise<SoakEnvironment> {
    const root = mkdtempSync(join(tmpdir(), "soak-"));
    const world: { current?: SoakEnvironment } = {};
    const plan = new ProviderPlan((id) => world.current?.ledger.pushes.get(id)?.text);
    const provider = await startProvider({
      otherwise: (entry) => plan.respond(entry),
      maxLogEntries: 64,
    });
    plan.attach(provider);
    const models = Array.from({ length: modelCount }, (_, n) => ({
      id: `model-${n}`,
      contextWindow: 1_000_000,
      input: ["text", "image"],
    }));
    const settings = { compaction: { enabled: true, reserveTokens: 16_384, keepRecentTokens: 400 } };
    const agentDir = await createAgentDir({ provider, parentDir: root, models, settings });
    const extensions = join(agentDir.path, "extensions");
    const fixture = join(checkout, "test", "fixtures", "extension", "soak-pi.ts");
    mkdirSync(extensions);
    writeFileSync(join(extensions, "soak-pi.ts"), `export { default } from ${JSON.stringify(fixture)};\n`);
    const env = { ...agentDir.env, SOAK_EAGER_URL: `${provider.baseUrls.openai}/chat/completions` };
    world.current = new SoakEnvironment(root, provider, plan, options, env);
    await world.current.#begin();
    return world.current;
  }

  /** Gets the daemon's answer from one of the connections to its current life, waiting until there is one. */
  async call<M extends MethodName>(method: M, params: Params<M>, random?: Random): Promise<Called<Result<M>>> {
    return await this.callBy(await this.peer(random), method, params);
  }

  async callBy<M extends MethodName>(peer: Peer, method: M, params: Params<M>): Promise<Called<Result<M>>> {
    const late = new AbortController();
    const timeout = sleep(callTimeoutMs, "late" as const, { signal: late.signal }).catch(() => "late" as const);
    const called = peer.call(method, params).then(
      (result): Called<Result<M>> => ({ kind: "result", result }),
      (error: unknown): Called<Result<M>> => {
        if (error instanceof ConnectionLost) return { kind: "cut" };
        if (error instanceof WireError) return { kind: "refused", error };
        throw error;
      },
    );
    const first = await Promise.race([called, timeout]);
    late.abort();
    if (first !== "late") return first;
    this.violations.push({
      kind: "protocol",
      message: `${method} was not answered within ${callTimeoutMs} ms: ${JSON.stringify(params).slice(0, 200)}`,
    });
    return { kind: "cut" };
  }

  /** The current state of a delivery; undefined when the daemon does not know it or ends. */
  async get(deliveryId: string, random?: Random): Promise<Delivery | undefined> {
    const peer = await this.peer(random);
    const askedAt = Date.now();
    const called = await this.callBy(peer, "delivery/get", { deliveryId });
    if (called.kind !== "result") return undefined;
    this.ledger.saw({ at: Date.now(), askedAt, from: "delivery/get", life: peer.life, delivery: called.result });
    return called.result;
  }

  /** A connection to the current life of the daemon. */
  async peer(random?: Random): Promise<Peer> {
    for (;;) {
      await this.#up.promise;
      const open = this.#peers.filter((peer) => peer.isOpen);
      const peer = random === undefined ? open[0] : open[random.integer(0, open.length - 1)];
      if (peer !== undefined) return peer;
      // All peers were cut, or the daemon has just ended: looked at again, without a busy loop.
      await sleep(5);
    }
  }

  /** A separate connection, which may be cut. */
  async openPeer(): Promise<Peer> {
    for (;;) {
      await this.#up.promise;
      try {
        return await this.#connect();
      } catch {
        // A refused connection is tried again, without a busy loop.
        await sleep(5);
      }
    }
  }

  /** Subscribes every connection to a session. */
  async watch(sessionId: string): Promise<void> {
    this.#subscribed.add(sessionId);
    await Promise.all(this.#peers.map((peer) => this.#subscribe(peer, sessionId)));
    // A daemon does not report what it finds at its start.
    const called = await this.call("session/get", { sessionId });
    if (called.kind === "result") this.ledger.sawSession(called.result);
  }

  isWatched(sessionId: string): boolean {
    return this.#subscribed.has(sessionId);
  }

  unwatch(sessionId: string): void {
    this.#subscribed.delete(sessionId);
    this.#lastSeq.delete(sessionId);
    this.seq.forget(sessionId);
  }

  /** Ends the daemon and starts the next life. One at a time; `between` runs while no daemon runs. */
  replaceDaemon(
    signal: "SIGKILL" | "SIGTERM",
    between: () => void | Promise<void> = () => {},
    prefix: readonly string[] = [],
    afterwards: () => void | Promise<void> = () => {},
  ): Promise<void> {
    const done = this.#replacing.then(async () => {
      this.#up = Promise.withResolvers();
      this.ledger.died();
      await this.lives.end(signal);
      await Promise.all(this.#peers.splice(0).map((peer) => peer.ended));
      this.ledger.died();
      await between();
      await this.#begin(prefix);
      await afterwards();
    });
    this.#replacing = done.catch(() => {});
    return done;
  }

  /** Kills what a dead daemon has left, as a power failure does. */
  async endChildren(): Promise<void> {
    for (;;) {
      const left = processesWith(this.processMarker);
      if (left.length === 0) return;
      for (const { pid } of left) signal(pid, "SIGKILL");
      // The end of a process that another one started is no event.
      await sleep(20);
    }
  }

  /** Ends the daemon gracefully, and all connections. */
  async stop(): Promise<void> {
    await this.#replacing;
    await this.lives.end("SIGTERM");
    await Promise.all(this.#peers.splice(0).map((peer) => peer.ended));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.lives.end("SIGKILL");
    await this.endChildren();
    for (const peer of this.#peers.splice(0)) peer.close();
    await this.provider.close();
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  }

  async #begin(prefix: readonly string[] = []): Promise<void> {
    this.#daemon = await this.lives.start(prefix);
    for (let n = 0; n < peerCount; n += 1) this.#peers.push(await this.#connect());
    this.#up.resolve();
    await Promise.all([...this.#subscribed].map((sessionId) => this.watch(sessionId)));
    // Changes that were stored but not reported when the last life ended are not reported later.
    const open = [...this.#subscribed].flatMap((sessionId) => this.ledger.open(sessionId));
    await Promise.all(open.map(({ id }) => this.get(id)));
  }

  async #connect(): Promise<Peer> {
    if (this.#daemon === undefined) throw new Error("there is no daemon");
    this.#peerNames += 1;
    return await Peer.open({
      name: `connection ${this.#peerNames}`,
      life: this.lives.life,
      daemon: this.#daemon,
      onNotification: (peer, method, params, text) => this.#told(peer, method, params, text),
    });
  }

  async #subscribe(peer: Peer, sessionId: string): Promise<void> {
    const after = this.#lastSeq.get(sessionId);
    this.seq.subscribe(peer.name, sessionId, after);
    const called = await this.callBy(peer, "session/subscribe", {
      sessionId,
      ...(after === undefined ? {} : { after }),
    });
    if (called.kind === "result") this.seq.subscribed(peer.name, sessionId, called.result);
  }

  #told(peer: Peer, method: string, params: Record<string, unknown>, text: string): void {
    if (method === "session/gap") {
      const gap = params as Gap & { readonly sessionId: string };
      this.seq.gap(peer.name, gap.sessionId, gap);
      return;
    }
    const { sessionId, seq, firstSeq } = params as object as NumberedParams;
    this.seq.told(peer.name, sessionId, seq, text, firstSeq);
    if (seq > (this.#lastSeq.get(sessionId) ?? 0)) this.#lastSeq.set(sessionId, seq);
    if (method === "delivery/updated") {
      const { delivery } = params as { readonly delivery: Parameters<Ledger["saw"]>[0]["delivery"] };
      this.ledger.saw({ at: Date.now(), from: peer.name, life: peer.life, delivery });
    } else if (method === "session/updated") {
      this.ledger.sawSession(params["session"] as Parameters<Ledger["sawSession"]>[0]);
    }
  }
}
