import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { JsonlSplitter } from "../../protocol/jsonl.ts";
import type { PartsConfig } from "../../protocol/link.ts";
import type { OutwardFrame } from "../../protocol/link-outward.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { ChildExit } from "../../protocol/session.ts";
import { within } from "../lib/deadline.ts";
import { deferred } from "../lib/deferred.ts";
import { TextRing } from "../lib/text-ring.ts";
import type { ChildRegistry } from "./child-registry.ts";
import { advance, type ChildState } from "./child-state.ts";
import { Commands, type SendOptions } from "./commands.ts";
import { Link } from "./link.ts";
import { descendants, endMarked, type ProcessIdentity } from "./processes.ts";
import { type ReadyState, readyState } from "./ready-state.ts";
import type { PiCommand, PiEvent, PiResponse } from "./records.ts";
import { type RecordDiagnostic, Router } from "./router.ts";
import type { PiOptions, PiProgram } from "./spawn-options.ts";
import { helperMissing, modelIsMadeUp, startFailure } from "./start-failure.ts";
import { StartupDialogs } from "./startup-dialogs.ts";
import type { ChildStdio, ProcessExit } from "./stdio.ts";
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
}

export interface ChildOptions extends ChildSinks {
  readonly program: PiProgram;
  readonly helper: string;
  /** For the helper's configuration and large frames; 0700. */
  readonly runDirectory: string;
  /** Default: none; a session adopts the child later. */
  readonly sessionFile?: string | undefined;
  /** How long its first request waits for a context. Default: it does not wait. */
  readonly contextWithinMs?: number | undefined;
  /** Whether it must not make model requests, even if extensions start runs. Default: requests are allowed. */
  readonly isOnlyAsked?: boolean | undefined;
  /** Configuration of the parts inside pi. Default: all parts are off. */
  readonly parts?: PartsConfig | undefined;
  readonly cwd: string;
  readonly pi: PiOptions;
  readonly env: NodeJS.ProcessEnv;
  readonly limits: ChildLimits;
  /** Records it while it runs, for the next daemon. Default: not recorded. */
  readonly childRegistry?: ChildRegistry | undefined;
  /** Aborts the start when the child is no longer needed. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

const notedRecentlyMs = 1_000;

/** One running `pi --mode rpc` with its helper. Created by `startPi`; ends once, with a reason. */
export class Child {
  /** Marks all its descendants, in their environment. */
  readonly id: string;
  readonly link: Link;
  readonly #options: ChildOptions;
  readonly #stdio: ChildStdio;
  readonly #commands: Commands;
  readonly #stderr: TextRing;
  readonly #exited = deferred<ChildExit>();
  readonly #startup: StartupDialogs;
  readonly #cleaned: Promise<void>;
  #sinks: ChildSinks;
  #state: ChildState = { kind: "starting" };
  #stopped: Promise<ChildExit> | undefined;
  #extensionCommands: ReadonlySet<string> = new Set();
  /** Its descendants, as seen during its shutdown. */
  readonly #below: ProcessIdentity[] = [];
  #notedAt = Number.NEGATIVE_INFINITY;
  #heard = 0;
  #wanted = false;
  #wasReady = false;

  constructor(options: ChildOptions, id: string, statusKey: string, stdio: ChildStdio) {
    this.id = id;
    this.#options = options;
    this.#sinks = options;
    this.#stdio = stdio;
    this.#startup = new StartupDialogs(options.limits);
    this.#stderr = new TextRing(options.limits.maxStderrBytes);
    this.#commands = new Commands((line) => this.#write(line));
    this.link = new Link({
      statusKey,
      directory: options.runDirectory,
      commands: this.#commands,
      onFrame: (frame) => this.#frame(frame),
      onDoubt: () => this.#recheck(),
    });
    this.#listen();
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
    return this.#stderr.toString();
  }

  /** Number of output chunks: it changes with each sign of life. */
  get heard(): number {
    return this.#heard;
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
    // A child that has already ended was not stopped on request.
    if (this.#state.kind !== "exited" && this.#stopped === undefined) this.#wanted = true;
    return this.#end();
  }

  /**
   * Records its descendants, to end them with it: a tool that cleared its environment can be found only while its
   * parents live. Called before each step of the shutdown, unless it was called a moment ago. Never rejects.
   */
  async noteDescendants(): Promise<void> {
    if (performance.now() - this.#notedAt < notedRecentlyMs) return;
    try {
      const found = await descendants(this.#stdio.pid);
      // Otherwise its pid may already belong to another process.
      if (this.#state.kind !== "exited") this.#below.push(...found);
      this.#notedAt = performance.now();
    } catch (error) {
      this.#options.log.warn({ err: error }, "cannot list the descendants of pi");
    }
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
      });
    }
    this.#state = advance(this.#state, { kind: "ready" });
    this.#wasReady = true;
    return ready.value;
  }

  async #checks(): Promise<ReadyState> {
    const first = await this.#commands.send({ type: "get_state" }, { onResponse: () => this.#startup.answered() });
    // The helper sends hello in session_start, before pi's first answer.
    if (this.link.command === undefined) await this.#requireHello();
    await this.verify();
    if (this.#options.pi.model !== undefined) await this.#verifyModel(this.#options.pi.model);
    return readyState(first.data);
  }

  async #requireHello(): Promise<void> {
    // A refused hello (another version of the link) has its own error; without any hello the helper did not load.
    const hello = await within(this.link.hello, 0);
    if (hello.kind === "timeout") throw helperMissing(this.stderrTail);
  }

  /**
   * Checks that the helper's command exists and is unique: if another extension had the same name, frames would go to
   * the model as text. Throws `link_failed`.
   */
  async verify(): Promise<void> {
    const response = await this.#commands.send({ type: "get_commands" });
    const listed = isRecord(response.data) ? response.data["commands"] : undefined;
    const ofExtensions = (Array.isArray(listed) ? listed : [])
      .filter(isRecord)
      .filter(({ source }) => source === "extension")
      .map(({ name }) => String(name));
    this.#extensionCommands = new Set(ofExtensions);
    if (this.link.command === undefined || !this.#extensionCommands.has(this.link.command)) {
      throw helperMissing(this.stderrTail);
    }
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
    });
  }

  #listen(): void {
    const { stdin, stdout, stderr } = this.#stdio;
    const { limits, log } = this.#options;
    const onDiagnostic = (diagnostic: RecordDiagnostic): void => this.#sinks.onDiagnostic(diagnostic);
    const router = new Router({
      response: (response) => this.#commands.settle(response),
      status: (key, text) => this.link.receive(key, text),
      event: (record, event, isDelta) => {
        if (event?.type === "extension_ui_request" && this.#state.kind === "starting") this.#startup.look(event);
        this.#sinks.onEvent(record, event, isDelta);
      },
      unread: (head) => this.#commands.refuse(head, "is not valid JSON, is nested too deeply or has too many parts"),
      diagnostic: onDiagnostic,
    });
    const splitter = new JsonlSplitter({
      maxRecordBytes: limits.maxRecordBytes,
      onRecord: (record) => {
        try {
          router.route(record);
        } catch (error) {
          // An unreadable record must not affect the daemon and its other sessions.
          log.error({ err: error }, "cannot handle a record of pi");
          onDiagnostic({ kind: "unparsable", bytes: record.length, excerpt: "" });
        }
      },
      onOversize: (head, bytes) => {
        const excerpt = head.toString("utf8");
        onDiagnostic({ kind: "record_too_large", bytes, excerpt });
        this.#commands.refuse(excerpt, `has ${bytes} bytes, over the limit of ${limits.maxRecordBytes}`);
      },
    });
    stdout.on("data", (chunk: Buffer) => {
      this.#heard += 1;
      splitter.push(chunk);
    });
    stdout.on("end", () => {
      const rest = splitter.rest();
      if (rest !== undefined) onDiagnostic({ kind: "cut_off", bytes: rest.length, excerpt: rest.toString("utf8") });
      // A pi that closed its stdout cannot report anything.
      void this.#end();
    });
    stdout.on("error", (error) => log.warn({ err: error }, "pi's stdout failed"));
    stderr.on("data", (chunk: Buffer) => this.#stderr.push(chunk));
    stderr.on("error", (error) => log.warn({ err: error }, "pi's stderr failed"));
    // A pi that closed its stdin cannot receive anything.
    stdin.on("error", () => void this.#end());
  }

  #write(line: string): void {
    const { stdin } = this.#stdio;
    if (stdin.writableLength > this.#options.limits.maxStdinBacklogBytes) {
      throw new WireError("overloaded", "pi does not read its stdin; the backlog has reached its limit.", {
        retryAfterMs: 1_000,
      });
    }
    if (stdin.writable) stdin.write(line);
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
    this.verify().catch((error: unknown) => {
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
        pid: this.#stdio.pid,
        exited: this.#stdio.exited,
        endInput: () => this.#stdio.stdin.end(),
        beforeStep: () => this.noteDescendants(),
      },
      this.#options.limits,
    );
    return await this.#exited.promise;
  }

  async #ended({ code, signal }: ProcessExit): Promise<void> {
    const exit: ChildExit = { at: Date.now(), code, signal, expected: this.#wanted, stderrTail: this.stderrTail };
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
  }
}

function suggest(model: string, names: readonly string[]): string {
  const part = (model.split("/").at(-1) ?? model).slice(0, 4).toLowerCase();
  const close = names.filter((name) => name.toLowerCase().includes(part)).slice(0, 3);
  const offered = close.length > 0 ? close : names.slice(0, 3);
  return offered.length === 0 ? " pi has no model with credentials." : ` Did you mean ${offered.join(", ")}?`;
}
