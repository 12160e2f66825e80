import { execFileSync, spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HELPER_CONFIG_ENV, LINK_VERSION, type PartsConfig } from "../../../protocol/link.ts";
import type { HeldPush } from "../../../protocol/link-inward.ts";
import type { OutwardFrame } from "../../../protocol/link-outward.ts";
import type { OptimisationOptions } from "../../../protocol/optimisation/options.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
import type { PruningOptions } from "../../../protocol/pruning/options.ts";
import { resolvePruning } from "../../../protocol/pruning/resolve.ts";
import { type AgentDir, createAgentDir, type ScriptedModel, type ScriptedName } from "../../../provider/agent-dir.ts";
import type { ScriptedProvider } from "../../../provider/server.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { helper } from "../../helpers/programs.ts";
import { type Fits, type PiProcess, RecordLog } from "./record-log.ts";

const root = join(import.meta.dirname, "..", "..", "..");
const lean = ["-ne", "-np", "--no-themes"];

export interface PiOptions {
  readonly provider: ScriptedProvider;
  /** pi's program. Default: that of the tested version. */
  readonly cli?: string;
  readonly api?: ScriptedName;
  readonly models?: readonly ScriptedModel[];
  /** Further names of the providers. */
  readonly aliases?: Readonly<Record<string, ScriptedName>>;
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Fixture extensions that pi loads before and after the helper, by name. */
  readonly before?: readonly string[];
  readonly after?: readonly string[];
  /** Replaces the helper's own entry; `none`: pi without the helper. */
  readonly entry?: string;
  /** Whether pi gets a daemon's configuration. Default true. */
  readonly isConfigured?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** How long its requests wait for a context. Default: they do not. */
  readonly contextWithinMs?: number;
  /** The enabled parts, unless `parts` overrides them. Default: none. */
  readonly optimisation?: OptimisationOptions;
  /** The options of pruning, unless `parts` overrides them. Default: off. */
  readonly pruning?: PruningOptions;
  /** Further flags of pi's. */
  readonly flags?: readonly string[];
  /** The configuration of the parts. Default: none is on. */
  readonly parts?: PartsConfig;
  /** Whether pi looks for context files and skills. Default false. */
  readonly findsFiles?: boolean;
  /** Writes files before pi starts. */
  readonly furnish?: (at: { readonly directory: string; readonly cwd: string; readonly agentDir: string }) => void;
  /** Whether its sessions are in memory only. Default false. */
  readonly isEphemeral?: boolean;
  /** The lines of the session's file after its header. Default: none. */
  readonly entries?: readonly object[];
}

export type Frame = OutwardFrame;

/** The path of a fixture extension. */
export function fixture(name: string): string {
  return join(root, "test", "fixtures", "extension", `${name}.ts`);
}

/** A push with the usual fields. */
export function push(deliveryId: string, content: HeldPush["content"], fields: Partial<HeldPush> = {}): HeldPush {
  return {
    deliveryId,
    customType: "test",
    content,
    display: true,
    deliverAs: "steer",
    triggerTurn: true,
    onAbort: "park",
    ...fields,
  };
}

/** Starts pi with the helper and a prepared session file. */
export async function startPi(options: PiOptions): Promise<Pi> {
  const directory = mkdtempSync(join(tmpdir(), "pi-helper-"));
  const agentDir = await createAgentDir({
    provider: options.provider,
    parentDir: directory,
    ...(options.api === undefined ? {} : { defaultProvider: options.api }),
    ...(options.models === undefined ? {} : { models: options.models }),
    ...(options.aliases === undefined ? {} : { aliases: options.aliases }),
    ...(options.settings === undefined ? {} : { settings: options.settings }),
  });
  const pi = new Pi(directory, agentDir, options);
  if (options.isConfigured !== false) await pi.frame("hello");
  return pi;
}

/** One running pi as the daemon sees it: its records, including the frames of the helper. */
export class Pi implements AsyncDisposable {
  readonly directory: string;
  readonly cwd: string;
  readonly configFile: string;
  readonly #agentDir: AgentDir;
  readonly #options: PiOptions;
  #sessionFile: string;
  #log: RecordLog;
  #child: PiProcess;
  #ids = 0;
  #fifos = 0;

  constructor(directory: string, agentDir: AgentDir, options: PiOptions) {
    this.directory = directory;
    this.cwd = join(directory, "cwd");
    mkdirSync(this.cwd);
    mkdirSync(join(directory, "sessions"));
    this.configFile = join(directory, "helper.json");
    this.#sessionFile = this.makeSessionFile(randomUUID(), options.entries);
    this.#agentDir = agentDir;
    this.#options = options;
    options.furnish?.({ directory, cwd: this.cwd, agentDir: agentDir.path });
    ({ child: this.#child, log: this.#log } = this.#spawn());
  }

  get log(): RecordLog {
    return this.#log;
  }

  /** The helper's configuration for these options. */
  partsOf(optimisation: OptimisationOptions = {}, pruning?: PruningOptions): PartsConfig {
    return {
      optimisation: resolveOptimisation(optimisation),
      ...(pruning === undefined ? {} : { pruning: resolvePruning(pruning) }),
      spillDirectory: this.spillDirectory,
      labels: {},
    };
  }

  get spillDirectory(): string {
    return join(this.directory, "spill");
  }

  /** pi's directory of configuration. */
  get agentDir(): string {
    return this.#agentDir.path;
  }

  get sessionFile(): string {
    return this.#sessionFile;
  }

  /** Kills pi without warning and starts another on the same session file. Its log starts empty. */
  async revive(): Promise<void> {
    const gone = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await gone;
    await this.restart();
  }

  /** Ends pi and starts another on the same session file. Its log starts empty. */
  async restart(): Promise<void> {
    await this.#end();
    ({ child: this.#child, log: this.#log } = this.#spawn());
    await this.frame("hello");
  }

  /**
   * Switches the running pi to a new session, or to that of a file, and reloads its extensions. The log starts empty.
   */
  async replaceSession(file?: string): Promise<void> {
    if (this.#options.isEphemeral === true && file === undefined) {
      await this.rpc({ type: "new_session" });
    } else {
      this.#sessionFile = file ?? this.makeSessionFile(randomUUID(), this.#options.entries);
      await this.rpc({ type: "switch_session", sessionPath: this.#sessionFile });
    }
    this.#log.forget("hello");
  }

  #spawn(): { readonly child: PiProcess; readonly log: RecordLog } {
    const {
      before = [],
      after = [],
      entry = helper,
      isConfigured = true,
      isEphemeral = false,
      findsFiles = false,
      contextWithinMs,
      optimisation,
      pruning,
      parts = optimisation === undefined && pruning === undefined ? undefined : this.partsOf(optimisation, pruning),
      flags = [],
      env,
    } = this.#options;
    const statusKey = `link-${randomUUID()}`;
    const config = { link: LINK_VERSION, statusKey, contextWithinMs, parts };
    writeFileSync(this.configFile, JSON.stringify(config), { mode: 0o600 });
    const own = entry === "none" ? [] : [entry];
    const extensions = [...before.map(fixture), ...own, ...after.map(fixture)].flatMap((path) => ["-e", path]);
    const place = isEphemeral ? ["--no-session"] : ["--session", this.#sessionFile];
    const session = [...place, "--model", this.#agentDir.model];
    const cli = this.#options.cli ?? piUnderTest().cli;
    const files = findsFiles ? [] : ["-ns", "-nc"];
    const args = [cli, "--mode", "rpc", ...lean, ...files, ...flags, ...extensions, ...session];
    const child = spawn(process.execPath, args, {
      cwd: this.cwd,
      env: {
        ...process.env,
        ...this.#agentDir.env,
        ...(isConfigured ? { [HELPER_CONFIG_ENV]: this.configFile } : {}),
        ...env,
      },
      stdio: ["pipe", "pipe", "pipe"],
    });
    return { child, log: new RecordLog(child, statusKey) };
  }

  async #end(): Promise<void> {
    this.#child.stdin.end();
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, "exit");
  }

  /** A session file as the daemon creates it: its header, and these entries. */
  makeSessionFile(id: string, entries: readonly object[] = []): string {
    const file = join(this.directory, "sessions", `${id}.jsonl`);
    const header = { type: "session", version: 3, id, timestamp: new Date().toISOString(), cwd: this.cwd };
    const lines = [header, ...entries].map((line) => `${JSON.stringify(line)}\n`);
    writeFileSync(file, lines.join(""), { mode: 0o600 });
    return file;
  }

  /** The newest `hello`. */
  get hello(): Extract<Frame, { kind: "hello" }> {
    const hello = this.frames("hello").at(-1);
    if (hello === undefined) throw new Error("The helper has not said hello.");
    return hello;
  }

  /** Sends a record to pi and returns its response. */
  async rpc(record: Readonly<Record<string, unknown>>): Promise<Readonly<Record<string, unknown>>> {
    const id = `r${this.#ids++}`;
    this.write({ ...record, id });
    const response = await this.log.until((seen) => seen["type"] === "response" && seen["id"] === id);
    if (response["success"] !== true)
      throw new Error(`pi refused ${String(record["type"])}: ${String(response["error"])}`);
    return response;
  }

  /** Sends a frame and returns the data of its reply. */
  async send<T = unknown>(frame: Readonly<Record<string, unknown>>): Promise<T> {
    const rid = typeof frame["rid"] === "string" ? frame["rid"] : `f${this.#ids++}`;
    return await this.sendRaw<T>(JSON.stringify({ ...frame, rid }), rid);
  }

  /** Sends any text as a frame and waits for a reply with this `rid`. */
  async sendRaw<T = unknown>(text: string, rid: string): Promise<T> {
    this.write({ type: "prompt", id: `p${this.#ids++}`, message: `/${this.hello.command} ${text}` });
    const reply = await this.frame("reply", (seen) => seen.rid === rid);
    if (!reply.ok) throw new Error(reply.error);
    return reply.data as T;
  }

  /** Sends a frame by a file, and returns the reply and the file's path. */
  async sendFile(
    frame: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly path: string; readonly reply: unknown }> {
    const rid = `f${this.#ids++}`;
    const content = Buffer.from(JSON.stringify({ ...frame, rid }));
    const path = join(this.directory, `${rid}.json`);
    writeFileSync(path, content, { mode: 0o600 });
    const sha256 = createHash("sha256").update(content).digest("hex");
    const reply = await this.sendRaw(JSON.stringify({ kind: "file", rid, path, bytes: content.length, sha256 }), rid);
    return { path, reply };
  }

  async hold(...pushes: readonly HeldPush[]): Promise<{ held: string[]; inserted: string[]; running: boolean }> {
    return await this.send({ kind: "hold", pushes });
  }

  write(record: Readonly<Record<string, unknown>>): void {
    this.#child.stdin.write(`${JSON.stringify(record)}\n`);
  }

  frames<K extends Frame["kind"]>(kind: K): Extract<Frame, { kind: K }>[] {
    return this.log.frames.filter((frame) => frame.kind === kind) as Extract<Frame, { kind: K }>[];
  }

  /** The first frame of a kind that fits, past or future. */
  async frame<K extends Frame["kind"]>(
    kind: K,
    fits: (frame: Extract<Frame, { kind: K }>) => boolean = () => true,
  ): Promise<Extract<Frame, { kind: K }>> {
    const isIt = (frame: Frame | undefined): frame is Extract<Frame, { kind: K }> =>
      frame?.kind === kind && fits(frame as Extract<Frame, { kind: K }>);
    const record = await this.log.until((seen) => isIt(this.log.frameOf(seen)));
    return this.log.frameOf(record) as Extract<Frame, { kind: K }>;
  }

  /** The nth `settled` of the helper, from 1, once pi has reported to everyone that it has settled. */
  async settled(nth = 1): Promise<Extract<Frame, { kind: "settled" }>> {
    let seen = 0;
    await this.log.until((record) => record["type"] === "agent_settled" && ++seen === nth);
    const settled = this.frames("settled")[nth - 1];
    if (settled === undefined) throw new Error("pi has settled and the helper has not said so.");
    return settled;
  }

  /** Reports of the fixture `delivering` under a tag, past or future. */
  async told(tag: string): Promise<string> {
    const record = await this.log.until(
      ({ method, statusKey }) => method === "setStatus" && statusKey === `tell:${tag}`,
    );
    return String(record["statusText"]);
  }

  async event(type: string, fits: Fits = () => true): Promise<Readonly<Record<string, unknown>>> {
    return await this.log.until((record) => record["type"] === type && fits(record));
  }

  /** The frames about one delivery, in order, in a word each. */
  receiptsOf(deliveryId: string): string[] {
    return this.log.frames.flatMap((frame) => {
      if (frame.kind === "verdict") {
        const payload = frame.payload[deliveryId];
        const words = [frame.outcome, frame.evidence, frame.status, payload];
        return payload === undefined ? [] : [words.filter((word) => word !== undefined).join(" ")];
      }
      if (!("deliveryIds" in frame) || !frame.deliveryIds.includes(deliveryId)) return [];
      return [frame.kind === "leftOut" ? `leftOut ${frame.reason}` : frame.kind];
    });
  }

  /** A tool call's command that waits until `release` is called. */
  blockingCommand(): { readonly command: string; readonly release: () => Promise<void> } {
    const fifo = join(this.directory, `fifo-${this.#fifos++}`);
    execFileSync("mkfifo", [fifo]);
    return { command: `cat ${fifo}`, release: () => writeFile(fifo, "released\n") };
  }

  /** The ids of the deliveries in the session file, in order, once for each entry. */
  async inserted(): Promise<string[]> {
    const { data } = await this.rpc({ type: "get_entries" });
    const { entries } = data as { entries: { type: string; details?: { "pi-rpcd"?: { deliveryId: string } } }[] };
    return entries.flatMap((entry) =>
      entry.type === "custom_message" ? [entry.details?.["pi-rpcd"]?.deliveryId ?? "-"] : [],
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#end();
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }
}
