import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { KeeperLimits } from "../../protocol/keeper.ts";
import type { PartsConfig } from "../../protocol/link.ts";
import type { OutwardFrame } from "../../protocol/link-outward.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { ChildExit } from "../../protocol/session.ts";
import { within } from "../lib/deadline.ts";
import { deferred } from "../lib/deferred.ts";
import type { ChildEnvironment } from "./child-environment.ts";
import type { ChildMcpServers } from "./child-mcp-servers.ts";
import type { ChildRegistry } from "./child-registry.ts";
import { advance, type ChildState } from "./child-state.ts";
import { Commands, isCommandId, type SendOptions } from "./commands.ts";
import { Intake } from "./intake.ts";
import { type KeptPlace, removeKept } from "./kept-stdio.ts";
import type { LeaseHolder } from "./lease-holder.ts";
import { type LeftLink, Link } from "./link.ts";
import { descendants, endMarked, type ProcessIdentity, signal } from "./processes.ts";
import { type ReadyState, readyState } from "./ready-state.ts";
import type { PiCommand, PiEvent, PiResponse } from "./records.ts";
import { type RecordDiagnostic, Router } from "./router.ts";
import type { PiOptions, PiProgram } from "./spawn-options.ts";
import { helperMissing, modelIsMadeUp, startFailure } from "./start-failure.ts";
import { StartupDialogs } from "./startup-dialogs.ts";
import type { ChildStdio, KeeperLink, ProcessExit, StderrPart } from "./stdio.ts";
import { type StopTimes, stopGracefully } from "./stop-ladder.ts";

export interface ChildLimits extends StopTimes {
  readonly maxRecordBytes: number;
  /** Bytes that may wait for pi to read its stdin. */
  readonly maxStdinBacklogBytes: number;
  readonly maxStderrBytes: number;
  /** pi reads its stdin only after the extensions' `session_start` hooks have ended, which can take time. */
  readonly startTimeoutMs: number;
  /** Time that dialogs of these hooks with a timeout may add to it, in total. */
  readonly maxStartupDialogMs: number;
  /** From a dialog without a timeout to the first answer: an extension need not wait for its dialog. */
  readonly startupDialogGraceMs: number;
}

/** Receivers of a child's reports, in the exact order in which pi wrote them. */
export interface ChildSinks {
  readonly onEvent: (record: Buffer, event: PiEvent | undefined, isDelta: boolean) => void;
  readonly onFrame: (frame: OutwardFrame) => void;
  readonly onDiagnostic: (diagnostic: RecordDiagnostic) => void;
  /** Prepares a large record that `onEvent` gets next; it waits for the promise. */
  readonly stage?: (record: Buffer) => Promise<void> | undefined;
  /**
   * A promise while no more records can be taken, or no large record with `bytes`; the child's output then waits.
   * Never rejects.
   */
  readonly room?: (bytes?: number) => Promise<void> | undefined;
  /** {@link Child.left} may have changed. */
  readonly onChanged?: () => void;
  /** {@link Child.handled} has changed. */
  readonly onHandled?: () => void;
}

/** Starts children so that they survive the daemon. */
export interface KeptOptions {
  /** The module that keeps pi's output. */
  readonly keeper: string;
  /** Its sockets; created with mode 0700. */
  readonly socketDirectory: string;
  readonly limits: KeeperLimits;
  /** A pi whose keeper takes longer is started with pipes. */
  readonly listenWithinMs: number;
  readonly status: KeptStatus;
}

export interface KeptStatus {
  /** Why the newest child, or the newest of those that live, ends with the daemon. */
  readonly problem: string | undefined;
  /** A child was started; `problem`: why it ends with the daemon. */
  started(childId: string, problem: string | undefined): void;
  ended(childId: string): void;
}

export interface ChildOptions extends ChildSinks {
  readonly program: PiProgram;
  /** Default: the child has pipes, and ends with the daemon. */
  readonly kept?: KeptOptions | undefined;
  readonly helper: string;
  /** For the helper's configuration and large frames; 0700. */
  readonly runDirectory: string;
  /** Default: none; a session adopts the child later. */
  readonly sessionFile?: string | undefined;
  /** Of a session without a file. Default: pi makes one. */
  readonly sessionId?: string | undefined;
  /** How long its first request waits for a context. Default: it does not wait. */
  readonly contextWithinMs?: number | undefined;
  /** Whether it must not make model requests, even if extensions start runs. Default: requests are allowed. */
  readonly isOnlyAsked?: boolean | undefined;
  /** Configuration of the parts inside pi. Default: all parts are off. */
  readonly parts?: PartsConfig | undefined;
  readonly cwd: string;
  readonly pi: PiOptions;
  /** The daemon's own environment. */
  readonly env: NodeJS.ProcessEnv;
  /** The variables of pi and its tools. Default: `env`. */
  readonly environment?: ChildEnvironment | undefined;
  /** Default: none. */
  readonly mcpServers?: ChildMcpServers | undefined;
  readonly limits: ChildLimits;
  /** What a former daemon knew of it. Default: it is new, and {@link Child.becomeReady} follows. */
  readonly left?: LeftState | undefined;
  /** Records it while it runs, for the next daemon. Default: not recorded. */
  readonly childRegistry?: ChildRegistry | undefined;
  /** Aborts the start when the child is no longer needed. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** The state of a usable child, for the next daemon. */
export interface LeftState {
  readonly link: LeftLink;
  readonly extensionCommands: readonly string[];
}

/** The ids of commands that are prompts begin with it. */
const promptIds = "p:";

const notedRecentlyMs = 1_000;

/** The process of a child. */
export interface ChildProcess {
  readonly id: string;
  /** Marks the frames of its helper; a secret. */
  readonly statusKey: string;
  readonly stdio: ChildStdio;
  /** Its files. */
  readonly place: KeptPlace;
  /** Present if it survives the daemon. */
  readonly identity?: LeaseHolder | undefined;
}

/** One running `pi --mode rpc` with its helper. Created by `startPi`; ends once, with a reason. */
export class Child {
  /** Marks all its descendants, in their environment. */
  readonly id: string;
  readonly link: Link;
  readonly statusKey: string;
  readonly place: KeptPlace;
  readonly identity: LeaseHolder | undefined;
  /** When it was taken over from a former daemon. Undefined: this daemon started it. */
  restoredAt: number | undefined;
  /** The place in its stderr before which it wrote for no session, or for another one. */
  stderrFrom = 0;
  /** Why it takes no new work and ends after its run, as the end of a sentence. Undefined: it takes work. */
  retires: string | undefined;
  readonly #options: ChildOptions;
  readonly #stdio: ChildStdio;
  readonly #commands: Commands;
  readonly #exited = deferred<ChildExit>();
  readonly #startup: StartupDialogs;
  readonly #intake: Intake;
  readonly #cleaned: Promise<void>;
  #sinks: ChildSinks;
  #state: ChildState = { kind: "starting" };
  #stopped: Promise<ChildExit> | undefined;
  #extensionCommands: ReadonlySet<string> = new Set();
  /** The check under way, until pi answers. */
  #verifying: Promise<void> | undefined;
  /** Its descendants, as seen during its shutdown. */
  readonly #below: ProcessIdentity[] = [];
  #notedAt = Number.NEGATIVE_INFINITY;
  #wanted = false;
  #wasReady = false;
  #handled: number;
  readonly #decided: string[] = [];
  #isHandling = false;

  constructor(options: ChildOptions, { id, statusKey, stdio, place, identity }: ChildProcess) {
    this.id = id;
    this.place = place;
    this.identity = identity;
    this.statusKey = statusKey;
    this.#options = options;
    this.#sinks = options;
    this.#stdio = stdio;
    this.#startup = new StartupDialogs(options.limits);
    this.#commands = new Commands((line) => this.#write(line));
    this.link = new Link({
      statusKey,
      directory: place.directory,
      commands: this.#commands,
      onFrame: (frame) => this.#frame(frame),
      onDoubt: () => this.#recheck(),
      left: options.left?.link,
    });
    this.#handled = stdio.keeper?.from ?? 0;
    if (options.left !== undefined) {
      this.#extensionCommands = new Set(options.left.extensionCommands);
      this.#state = advance(this.#state, { kind: "ready" });
      this.#wasReady = true;
      // It was told to end, or has decided so without a daemon.
      this.#wanted = stdio.keeper?.answer.ending === true;
    }
    this.#intake = this.#listen();
    this.#cleaned = stdio.exited.then((exit) => this.#ended(exit));
  }

  get state(): ChildState {
    return this.#state;
  }

  get pid(): number {
    return this.#stdio.pid;
  }

  /** Resolves with the reason when the process has ended and its last record was handled. */
  get exited(): Promise<ChildExit> {
    return this.#exited.promise;
  }

  /** Resolves when all processes that the child started have ended. */
  get cleaned(): Promise<void> {
    return this.#cleaned;
  }

  get stderrTail(): string {
    return this.#stdio.stderrTail;
  }

  /** As {@link ChildStdio.stderrAfter}. */
  stderrAfter(from: number, maxBytes: number): StderrPart {
    return this.#stdio.stderrAfter(from, maxBytes);
  }

  /** Holds what it writes until the daemon has dealt with it; undefined: it ends with this daemon. */
  get keeper(): KeeperLink | undefined {
    return this.#stdio.keeper;
  }

  /** Bytes of its output that were handled: all records before this place were passed on, and none after it. */
  get handled(): number {
    return this.#handled;
  }

  /** Whether a record is being passed on. */
  get isHandling(): boolean {
    return this.#isHandling;
  }

  /** For the next daemon. Undefined while it is not usable. */
  get left(): LeftState | undefined {
    const { left: link } = this.link;
    if (this.#state.kind !== "ready" || link === undefined) return undefined;
    return { link, extensionCommands: [...this.#extensionCommands] };
  }

  /** Changes with each sign of life, and while its output is held back. */
  get heard(): number {
    return this.#intake.heard;
  }

  /** Number of commands without an answer. */
  get pending(): number {
    return this.#commands.pending;
  }

  /** When the oldest of them was sent, by the clock of `performance.now`. */
  get waitingSince(): number | undefined {
    return this.#commands.waitingSince;
  }

  /** pi's answer. Rejects with `child_exited` if the child ends before it, and with `overloaded` if stdin is full. */
  send(command: PiCommand, options?: SendOptions): Promise<PiResponse> {
    return this.#commands.send(command, options);
  }

  /** Like {@link send} for a prompt: the next daemon recognises pi's answer to it, and whether pi got it. */
  prompt(promptId: string, command: PiCommand, onResponse: SendOptions["onResponse"]): Promise<PiResponse> {
    try {
      this.#requireRoom();
    } catch (error) {
      return Promise.reject(error);
    }
    this.keeper?.mark(promptId);
    return this.#commands.send(command, { id: `${promptIds}${promptId}`, ...(onResponse && { onResponse }) });
  }

  /** pi's answer to a prompt that a former daemon has sent. */
  expectPrompt(promptId: string, onResponse: SendOptions["onResponse"]): Promise<PiResponse> {
    return this.#commands.expect(`${promptIds}${promptId}`, "prompt", onResponse);
  }

  /** It is known what became of a prompt. */
  promptDecided(promptId: string): void {
    if (this.keeper !== undefined) this.#decided.push(promptId);
  }

  /** The prompts that were decided since the last call. */
  takeDecided(): readonly string[] {
    return this.#decided.splice(0);
  }

  /** Writes a record that has no answer. A child that does not read the answer to its own question is ended. */
  post(record: PiCommand): void {
    try {
      this.#commands.post(record);
    } catch (error) {
      this.#options.log.error({ err: error }, "pi does not read its stdin");
      void this.#end();
    }
  }

  /** Whether a text runs an extension's command, which pi does immediately and in every state. */
  isExtensionCommand(text: string): boolean {
    return text.startsWith("/") && this.#extensionCommands.has(text.slice(1).split(" ", 1)[0] ?? "");
  }

  /** Ends the child in order. Always returns the same promise. */
  stop(): Promise<ChildExit> {
    // A child that has already ended was not stopped on request; its last records may still be waiting.
    if (!this.#stdio.hasEnded && this.#state.kind !== "exited" && this.#stopped === undefined) this.#wanted = true;
    return this.#end();
  }

  /**
   * Records its descendants, to end them with it: a tool that cleared its environment can be found only while its
   * parents live. Called before each step of the shutdown, unless it was called a moment ago. Never rejects.
   */
  async noteDescendants(): Promise<void> {
    if (this.#stdio.hasEnded || performance.now() - this.#notedAt < notedRecentlyMs) return;
    try {
      const found = await descendants(this.#stdio.pid);
      // Otherwise its pid may already belong to another process.
      if (this.#state.kind !== "exited") this.#below.push(...found);
      this.#notedAt = performance.now();
    } catch (error) {
      this.#options.log.warn({ err: error }, "cannot list the descendants of pi");
    }
  }

  /** Leaves it to the next daemon: handles nothing more of what it writes. */
  leave(): void {
    this.#intake.stop();
  }

  /** After its end, when no daemon needs its files any more. */
  removeFiles(): void {
    removeKept(this.place);
  }

  get program(): PiProgram {
    return this.#options.program;
  }

  /** The receivers of its reports. */
  get sinks(): ChildSinks {
    return this.#sinks;
  }

  /** Replaces the receivers of its reports. */
  rebind(sinks: ChildSinks): void {
    this.#sinks = sinks;
  }

  /** Waits for the first answer, and checks the child before it is used. */
  async becomeReady(): Promise<ReadyState> {
    const ready = await this.#startup.within(this.#checks());
    if (ready.kind === "timeout") {
      throw new WireError("start_failed", `pi did not answer within ${ready.afterMs} ms after its start.`, {
        stderrTail: this.stderrTail,
        piStderr: this.stderrTail,
      });
    }
    this.#state = advance(this.#state, { kind: "ready" });
    this.#wasReady = true;
    return ready.value;
  }

  async #checks(): Promise<ReadyState> {
    const first = this.#commands.send({ type: "get_state" }, { onResponse: () => this.#startup.answered() });
    // Sent together: pi reads both when it has started.
    const listed = this.#listExtensionCommands();
    listed.catch(() => {});
    const { data } = await first;
    // The helper sends hello in session_start, before pi's first answer.
    if (this.link.command === undefined) await this.#requireHello();
    this.#requireCommand(await listed);
    if (this.#options.pi.model !== undefined) await this.#verifyModel(this.#options.pi.model);
    return readyState(data);
  }

  async #requireHello(): Promise<void> {
    // A refused hello (another version of the link) has its own error; without any hello the helper did not load.
    const hello = await within(this.link.hello, 0);
    if (hello.kind === "timeout") throw helperMissing(this.stderrTail);
  }

  /**
   * Checks that the helper's command exists and is unique: if another extension had the same name, frames would go to
   * the model as text. Calls before pi's answer share one request: pi makes the list and writes the answer in one step,
   * so the list is newer than every hello before the answer. Throws `link_failed`.
   */
  verify(): Promise<void> {
    if (this.#verifying !== undefined) return this.#verifying;
    const ended = (): void => {
      if (this.#verifying === verifying) this.#verifying = undefined;
    };
    const verifying = this.#listExtensionCommands(ended)
      .then((ofExtensions) => this.#requireCommand(ofExtensions))
      .finally(ended);
    this.#verifying = verifying;
    return verifying;
  }

  async #listExtensionCommands(onResponse: () => void = () => {}): Promise<ReadonlySet<string>> {
    const response = await this.#commands.send({ type: "get_commands" }, { onResponse });
    const listed = isRecord(response.data) ? response.data["commands"] : undefined;
    const ofExtensions = (Array.isArray(listed) ? listed : [])
      .filter(isRecord)
      .filter(({ source }) => source === "extension")
      .map(({ name }) => String(name));
    return new Set(ofExtensions);
  }

  #requireCommand(ofExtensions: ReadonlySet<string>): void {
    this.#extensionCommands = ofExtensions;
    if (this.link.command === undefined || !ofExtensions.has(this.link.command)) throw helperMissing(this.stderrTail);
  }

  /** pi continues with a model that it made up from an unknown id; the first request of the session would fail. */
  async #verifyModel(model: string): Promise<void> {
    if (!modelIsMadeUp(this.stderrTail)) return;
    const response = await this.#commands.send({ type: "get_available_models" });
    const models = isRecord(response.data) ? response.data["models"] : undefined;
    const names = Array.isArray(models)
      ? models.filter(isRecord).map((entry) => `${String(entry["provider"])}/${String(entry["id"])}`)
      : [];
    throw new WireError("model_not_found", `pi does not know the model "${model}".${suggest(model, names)}`, {
      model,
      available: names.slice(0, 32),
      piStderr: this.stderrTail,
    });
  }

  #listen(): Intake {
    const { stdin, stdout } = this.#stdio;
    const { limits, log } = this.#options;
    const { maxRecordBytes } = limits;
    const onDiagnostic = (diagnostic: RecordDiagnostic): void => this.#sinks.onDiagnostic(diagnostic);
    const router = new Router({
      response: (response) => this.#commands.settle(response) || this.#isForFormer(response),
      status: (key, text) => this.link.receive(key, text),
      event: (record, event, isDelta) => {
        if (event?.type === "extension_ui_request" && this.#state.kind === "starting") this.#startup.look(event);
        this.#sinks.onEvent(record, event, isDelta);
      },
      stage: (record) => this.#sinks.stage?.(record),
      unread: (head) => this.#commands.refuse(head, "is not valid JSON, is nested too deeply or has too many parts"),
      diagnostic: onDiagnostic,
    });
    // An unreadable record must not affect the daemon and its other sessions.
    const onUnhandled = (error: unknown, bytes: number): void => {
      log.error({ err: error }, "cannot handle a record of pi");
      onDiagnostic({ kind: "unparsable", bytes, excerpt: "" });
    };
    const from = this.#handled;
    const handledUpTo = (end: number): void => {
      this.#isHandling = false;
      this.#handled = from + end;
      // Without a session nobody stores what becomes of it.
      if (this.#sinks.onHandled === undefined) this.keeper?.ack(this.#handled);
      else this.#sinks.onHandled();
    };
    const intake = new Intake({
      stdout,
      maxRecordBytes,
      onRecord: (record, end) => {
        this.#isHandling = true;
        try {
          router.route(record);
        } catch (error) {
          onUnhandled(error, record.length);
        }
        handledUpTo(end);
      },
      onLarge: async (parts, bytes, end) => {
        await router.routeLarge(parts, bytes).catch((error: unknown) => onUnhandled(error, bytes));
        handledUpTo(end);
      },
      onOversize: (head, bytes, end) => {
        const excerpt = head.toString("utf8");
        onDiagnostic({ kind: "record_too_large", bytes, excerpt });
        this.#commands.refuse(excerpt, `has ${bytes} bytes, over the limit of ${maxRecordBytes}`);
        handledUpTo(end);
      },
      room: (bytes) => this.#sinks.room?.(bytes),
      onEnd: (rest) => {
        if (rest !== undefined) onDiagnostic({ kind: "cut_off", bytes: rest.length, excerpt: rest.toString("utf8") });
        // A pi that closed its stdout cannot report anything.
        void this.#end();
      },
    });
    stdout.on("error", (error) => log.warn({ err: error }, "pi's stdout failed"));
    // A pi that closed its stdin cannot receive anything.
    stdin.on("error", () => void this.#end());
    return intake;
  }

  /** Whether it answers a command of a former daemon. */
  #isForFormer({ id }: PiResponse): boolean {
    return this.#options.left !== undefined && id !== undefined && (isCommandId(id) || id.startsWith(promptIds));
  }

  #write(line: string): void {
    this.#requireRoom();
    const { stdin } = this.#stdio;
    if (stdin.writable) stdin.write(line);
  }

  #requireRoom(): void {
    if (this.#stdio.stdin.writableLength <= this.#options.limits.maxStdinBacklogBytes) return;
    throw new WireError("overloaded", "pi does not read its stdin; the backlog has reached its limit.", {
      retryAfterMs: 1_000,
    });
  }

  #frame(frame: OutwardFrame): void {
    // pi aborts its run during a shutdown. That is not an abort by a user, and drops no push.
    if (this.#state.kind === "stopping" && (frame.kind === "dropped" || frame.kind === "settled")) return;
    this.#sinks.onFrame(frame);
    // The session inside pi was replaced or reloaded, with its extensions.
    if (frame.kind === "hello") this.#recheck();
  }

  /** Ends a pi that has lost its helper: frames would go to the model as text. */
  #recheck(): void {
    if (this.#state.kind !== "ready") return;
    const verified = this.verify().then(() => this.#sinks.onChanged?.());
    verified.catch((error: unknown) => {
      this.#options.log.error({ err: error }, "the helper extension is missing or of another version");
      void this.#end();
    });
  }

  #end(): Promise<ChildExit> {
    this.#stopped ??= this.#stopGracefully();
    return this.#stopped;
  }

  async #stopGracefully(): Promise<ChildExit> {
    this.#state = advance(this.#state, { kind: "stopping" });
    await stopGracefully(
      {
        exited: this.#stdio.exited,
        endInput: () => this.#stdio.stdin.end(),
        signal: (name) => {
          // While its output is held back, it may have ended long ago.
          if (!this.#stdio.hasEnded) signal(-this.#stdio.pid, name);
        },
        beforeStep: () => this.noteDescendants(),
      },
      this.#options.limits,
    );
    return await this.#exited.promise;
  }

  async #ended({ code, signal }: ProcessExit): Promise<void> {
    // A stop from now on is not its reason.
    const expected = this.#wanted;
    // Everything that it wrote is reported before its end.
    await this.#intake.idle();
    const exit: ChildExit = { at: Date.now(), code, signal, expected, stderrTail: this.stderrTail };
    const error = this.#wasReady
      ? new WireError("child_exited", `pi ended (${signal ?? `code ${code}`}).`, { exit })
      : startFailure(exit, this.#options.pi, this.#options.helper);
    this.#state = { kind: "exited", exit };
    this.#startup.end(error);
    this.#commands.end(error);
    this.link.end(error);
    this.#exited.resolve(exit);
    // Tools live in process groups of their own, and survive a pi that is killed or crashes.
    try {
      const killed = await endMarked([this.id], { known: this.#below, leader: this.#stdio.pid });
      if (killed > 0) this.#options.log.info({ killed }, "ended processes that pi left");
    } catch (error) {
      this.#options.log.error({ err: error }, "cannot search for processes that pi left");
    }
    this.#options.childRegistry?.ended(this.id);
    this.#options.kept?.status.ended(this.id);
    // The session of a child that survives its daemon removes them when everything is stored.
    if (this.identity === undefined || this.#sinks.onHandled === undefined) this.removeFiles();
  }
}

function suggest(model: string, names: readonly string[]): string {
  const part = (model.split("/").at(-1) ?? model).slice(0, 4).toLowerCase();
  const close = names.filter((name) => name.toLowerCase().includes(part)).slice(0, 3);
  const offered = close.length > 0 ? close : names.slice(0, 3);
  return offered.length === 0 ? " pi has no model with credentials." : ` Did you mean ${offered.join(", ")}?`;
}
