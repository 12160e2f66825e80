import { randomUUID } from "node:crypto";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { v7 as uuidv7 } from "uuid";
import { WireError } from "../../protocol/errors.ts";
import { defined, isRecord } from "../../protocol/objects.ts";
import type { SessionCore } from "../core/session-core.ts";
import { unlessAborted } from "../lib/deadline.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { Child } from "../pi/child.ts";
import { changesState, type PiCommand, type PiResponse } from "../pi/records.ts";
import { refused } from "../prompts/prompting.ts";

export interface PiCallsOptions {
  /** Maximum number of client commands that pi has not answered, with or without a waiting caller. */
  readonly maxUnansweredCommands: number;
  /** Shell commands that wait for the running one. */
  readonly maxWaitingBash: number;
  /** A session as HTML. */
  readonly maxExportBytes: number;
  /** For files that pi writes and the daemon reads and deletes; 0700. */
  readonly runDirectory: string;
  /** The directory of the user's pi settings, for all sessions. */
  readonly settingsFile: string;
}

/** A setting of pi that is shared by all its processes. */
export interface SharedSetting {
  readonly setting: string;
  readonly value: string | boolean;
  readonly file: string;
}

export interface BashRequest {
  readonly command: string;
  readonly excludeFromContext?: boolean | undefined;
  readonly bashId?: string | undefined;
}

/** Called at the place of pi's response in the order of its records. */
export type AtResponse = () => void;

/** Interval at which an abandoned shell command is aborted, until it has ended. */
const abortAgainMs = 1_000;

export type { PiCommand } from "../pi/records.ts";

type Data = Readonly<Record<string, unknown>>;

interface Sending {
  readonly id?: string | undefined;
  readonly onResponse?: AtResponse | undefined;
}

/**
 * Commands of clients to a session's pi that start no run. pi accepts them in every state and answers in any order,
 * so they do not queue. A caller that goes away stops waiting; the end of the child rejects unanswered ones.
 */
export class PiCalls {
  readonly #core: SessionCore;
  readonly #options: PiCallsOptions;
  readonly #bash: SerialQueue;
  #unanswered = 0;

  constructor(core: SessionCore, options: PiCallsOptions) {
    this.#core = core;
    this.#options = options;
    this.#bash = new SerialQueue({
      maxWaiting: options.maxWaitingBash,
      onFull: () => overloaded(`${options.maxWaitingBash} shell commands are already waiting for the running one.`),
    });
  }

  /** pi's data. Throws errors of starting, `refused_by_pi`, `unsupported_by_pi`, `child_exited`, `overloaded`. */
  async send(command: PiCommand, signal: AbortSignal, atResponse?: AtResponse): Promise<unknown> {
    if (command.type === "compact") return await this.compact(instructionsOf(command), signal, atResponse);
    // A query executes nothing from a file that another program may have written. Checking for that costs more than
    // the query.
    // Not where answers have an order: then commands have one too.
    const purpose = atResponse === undefined && command.type.startsWith("get_") ? "reading" : "work";
    const answer = async (): Promise<unknown> => {
      const child = await this.#core.awake(purpose);
      signal.throwIfAborted();
      const { data } = await this.#ask(child, command, { onResponse: atResponse });
      if (changesState.has(command.type)) await this.#core.refresh(child);
      return command.type === "get_commands" ? withoutLink(data, child.link.command) : data;
    };
    return await unlessAborted(answer(), signal);
  }

  /**
   * Asks the pi that the session has now, and starts none. Undefined: it has none, or pi refused. `onResponse` is called at
   * the place of the answer among pi's records. Throws `overloaded` and `unsupported_by_pi`.
   */
  async askNow(command: PiCommand, onResponse: AtResponse): Promise<Data | undefined> {
    const { state } = this.#core;
    if (state.kind !== "idle" && state.kind !== "running") return undefined;
    try {
      return objectOf((await this.#ask(state.child, command, { onResponse })).data, command.type);
    } catch (error) {
      if (error instanceof WireError && (error.kind === "child_exited" || error.kind === "refused_by_pi"))
        return undefined;
      throw error;
    }
  }

  /** Changes a setting in all pi processes of the user. */
  async setShared(
    command: PiCommand,
    { setting, value }: Omit<SharedSetting, "file">,
    signal: AbortSignal,
    atResponse?: AtResponse,
  ) {
    await this.send(command, signal, atResponse);
    return { setting, value, file: this.#options.settingsFile };
  }

  /** Compacts the context. Throws `session_busy` during a run or a compaction, because pi would abort it. */
  async compact(customInstructions: string | undefined, signal: AbortSignal, atResponse?: AtResponse): Promise<Data> {
    const command = { type: "compact", ...(customInstructions === undefined ? {} : { customInstructions }) };
    const { response } = await this.#core.scope.run(async () => {
      const child = await this.#core.awake();
      if (this.#core.state.kind === "running") {
        throw new WireError(
          "session_busy",
          "A run is active, and pi would abort it. Wait for agent_settled, or abort it.",
        );
      }
      const { data } = await child.send({ type: "get_state" });
      if (isRecord(data) && data["isCompacting"] === true) {
        throw new WireError(
          "session_busy",
          "A compaction is active, and pi would abort it. Wait until it has ended, or abort it.",
        );
      }
      const response = this.#ask(child, command, { onResponse: atResponse });
      response.catch(() => {});
      // pi starts the compaction a moment after the command. A prompt in between would run at the same time.
      await child.send({ type: "get_state" }).catch(() => {});
      return { response };
    }, signal);
    return objectOf((await unlessAborted(response, signal)).data, command.type);
  }

  /**
   * Runs a shell command. One at a time: pi can only abort all at once, and a caller that goes away must not abort
   * another's. An aborted signal ends it.
   */
  async bash(
    { command, excludeFromContext, bashId = uuidv7() }: BashRequest,
    signal: AbortSignal,
    atResponse?: AtResponse,
  ): Promise<Data> {
    return await this.#bash.run(async () => {
      const child = await unlessAborted(this.#core.awake(), signal);
      const record = { type: "bash", command, ...(excludeFromContext === true ? { excludeFromContext } : {}) };
      const response = this.#ask(child, record, { id: `bash:${bashId}`, onResponse: atResponse });
      const abandon = (): void => {
        const abort = (): void => void child.send({ type: "abort_bash" }).catch(() => {});
        abort();
        // pi misses an abort that arrives before it has begun the command.
        again = setInterval(abort, abortAgainMs);
      };
      let again: NodeJS.Timeout | undefined;
      signal.addEventListener("abort", abandon, { once: true });
      try {
        // An aborted command is awaited too: the next may not begin before it has ended.
        const data = objectOf((await response).data, record.type);
        // If it finished before the abort arrived, its result is kept for a repeated call.
        if (data["cancelled"] === true) signal.throwIfAborted();
        return { ...data, bashId };
      } finally {
        clearInterval(again);
        signal.removeEventListener("abort", abandon);
      }
    }, signal);
  }

  /** The session as an HTML page. Throws `too_large`. */
  async exportHtml(signal: AbortSignal): Promise<string> {
    const { runDirectory, maxExportBytes } = this.#options;
    const outputPath = join(runDirectory, `export-${randomUUID()}.html`);
    const write = async (): Promise<string> => {
      const child = await this.#core.awake();
      try {
        // pi keeps the mode of an existing file.
        await writeFile(outputPath, "", { mode: 0o600, flag: "wx" });
        await this.#ask(child, { type: "export_html", outputPath });
        const { size } = await stat(outputPath);
        if (size > maxExportBytes) {
          throw new WireError("too_large", `The page has ${size} bytes; the limit is ${maxExportBytes}.`, {
            bytes: size,
            maxExportBytes,
          });
        }
        return await readFile(outputPath, "utf8");
      } finally {
        await rm(outputPath, { force: true });
      }
    };
    return await unlessAborted(write(), signal);
  }

  async #ask(child: Child, command: PiCommand, { id, onResponse }: Sending = {}): Promise<PiResponse> {
    const { maxUnansweredCommands } = this.#options;
    if (this.#unanswered >= maxUnansweredCommands) {
      throw overloaded(`pi has not answered ${maxUnansweredCommands} commands of this session yet.`);
    }
    this.#unanswered += 1;
    try {
      const response = await child.send(command, defined({ id, onResponse }));
      if (response.success) return response;
      const { type } = command;
      if (response.error?.startsWith("Unknown command") === true) {
        throw new WireError("unsupported_by_pi", `This pi has no command "${type}".`, {
          command: type,
          piError: response.error,
        });
      }
      if (type === "set_model" && response.error?.startsWith("Model not found") === true) {
        throw new WireError("model_not_found", `pi has no such model, or no login for it: ${response.error}.`, {
          piError: response.error,
        });
      }
      throw refused(type, response);
    } finally {
      this.#unanswered -= 1;
    }
  }
}

/** pi's data, where its documents promise an object. Throws `unsupported_by_pi`. */
export function objectOf(data: unknown, type: string): Data {
  if (isRecord(data)) return data;
  throw new WireError("unsupported_by_pi", `The answer of this pi to "${type}" has an undocumented format.`, {
    command: type,
  });
}

/** Throws `invalid_params`. */
function instructionsOf({ customInstructions }: PiCommand): string | undefined {
  if (customInstructions === undefined || typeof customInstructions === "string") return customInstructions;
  const findings = [{ path: "/command/customInstructions", message: "must be a string" }];
  throw new WireError("invalid_params", 'pi\'s "compact" takes customInstructions, a string.', { findings });
}

/** Only the helper may use its command: other uses would let a client write frames. */
export function withoutLink(data: unknown, name: string | undefined): unknown {
  if (!isRecord(data) || !Array.isArray(data["commands"])) return data;
  return {
    ...data,
    commands: data["commands"].filter((command) => !isRecord(command) || command["name"] !== name),
  };
}

export function overloaded(why: string): WireError {
  return new WireError("overloaded", why, { retryAfterMs: 1_000 });
}
