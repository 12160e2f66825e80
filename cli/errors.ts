import { constants } from "node:os";
import {
  DaemonNotRunningError,
  DeliveryError,
  InvalidParamsError,
  LocalError,
  ReconnectFailedError,
  RunFailedError,
  RunInterruptedError,
  UnknownDaemonError,
} from "../client/local-errors.ts";
import { WireError } from "../protocol/errors.ts";
import { findingsInWords, inCommandWords } from "./error-words.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";

/** The command line is invalid; nothing was done. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  /** The command whose help explains more; undefined: the overview. */
  readonly command: string | undefined;

  constructor(message: string, command?: string) {
    super(message);
    this.command = command;
  }
}

/** Says that an argument is missing. */
export function missingArgument(name: string): string {
  return `${name} is missing.${name === "SESSION" ? " `last` is the newest session." : ""}`;
}

/** A signal ended the command early. */
export class InterruptedError extends Error {
  override readonly name = "InterruptedError";
  readonly signal: NodeJS.Signals;

  constructor(signal: NodeJS.Signals) {
    super(`Interrupted by ${signal}.`);
    this.signal = signal;
  }

  get exitCode(): number {
    return 128 + constants.signals[this.signal];
  }
}

/** An error of the command line itself. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly kind: string;
  readonly exitCode: ExitCode;
  readonly data: unknown;
  /** More lines for people, after the message. */
  readonly lines: readonly string[];

  constructor(
    kind: string,
    message: string,
    { exitCode = exitCodes.failed, data, lines = [], cause }: CommandErrorOptions = {},
  ) {
    super(message, { cause });
    this.kind = kind;
    this.exitCode = exitCode;
    this.data = data;
    this.lines = lines;
  }
}

export interface CommandErrorOptions {
  readonly exitCode?: ExitCode;
  readonly data?: unknown;
  readonly lines?: readonly string[];
  readonly cause?: unknown;
}

/** An error as `--json` prints it, and as a daemon that did not start reports it to its parent. */
export interface ErrorReport {
  /** The error's name: in the wire's catalogue, of the client library, or of the daemon's start. */
  readonly name: string;
  /** The number in the wire's catalogue. */
  readonly code?: number;
  readonly message: string;
  readonly data?: unknown;
}

/** Converts any error of a command into a report. */
export function reportOf(error: unknown, command?: string): ErrorReport {
  if (error instanceof WireError || error instanceof UnknownDaemonError) {
    return { name: error.kind, code: error.code, message: messageOf(error, command), data: error.data };
  }
  if (error instanceof UsageError) return { name: "usage", message: error.message };
  if (error instanceof InterruptedError) return { name: "interrupted", message: error.message };
  if (!(error instanceof Error)) return { name: "unexpected", message: String(error) };
  const data = dataOf(error);
  return { name: nameOf(error), message: messageOf(error, command), ...(data !== undefined && { data }) };
}

/** An error's message, without words of the protocol that a user of the command line cannot act on. */
function messageOf(error: Error, command: string | undefined): string {
  if (error instanceof InvalidParamsError) return findingsInWords(error.findings, command) ?? error.message;
  if (error instanceof WireError && error.message.startsWith("The params of ")) {
    return findingsInWords(error.data["findings"], command) ?? error.message;
  }
  return error instanceof LocalError || error instanceof WireError
    ? inCommandWords(error.message, command)
    : error.message;
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof InterruptedError || error instanceof CommandError) return error.exitCode;
  if (error instanceof UsageError || error instanceof InvalidParamsError) return exitCodes.usage;
  if (error instanceof DaemonNotRunningError || error instanceof ReconnectFailedError) return exitCodes.noDaemon;
  if (error instanceof DeliveryError) return exitCodes.unmet;
  if (error instanceof RunFailedError) return error.run.outcome === "aborted" ? exitCodes.aborted : exitCodes.runFailed;
  if (error instanceof RunInterruptedError) return exitCodes.runInterrupted;
  if (error instanceof WireError && error.kind === "invalid_params") return exitCodes.usage;
  if (error instanceof WireError && error.kind === "deadline_exceeded") return exitCodes.deadline;
  return exitCodes.failed;
}

/** Errors of the daemon's start cannot be imported here; they have a `kind`, as all our errors have. */
function nameOf(error: Error): string {
  if (error instanceof LocalError || error instanceof CommandError) return error.kind;
  if ("kind" in error && typeof error.kind === "string") return error.kind;
  if ("code" in error && typeof error.code === "string") return error.code;
  return "unexpected";
}

function dataOf(error: Error): unknown {
  if (error instanceof CommandError) return error.data;
  if (error instanceof DeliveryError) return { delivery: error.delivery, until: error.until };
  if (error instanceof RunFailedError || error instanceof RunInterruptedError) return { run: error.run };
  if (error instanceof InvalidParamsError) return { method: error.method, findings: error.findings };
  return undefined;
}
