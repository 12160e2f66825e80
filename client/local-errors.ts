import type { Delivery, WaitUntil } from "../protocol/delivery.ts";
import type { ParamsFinding } from "../protocol/errors.ts";
import type { Gap } from "../protocol/event.ts";
import type { PromptResult, PromptState, RunOutcome } from "../protocol/prompt.ts";
import type { SocketEnd } from "./socket.ts";

/**
 * An error of this library. Never serialised; the daemon's errors are `WireError`s. `kind` is for programs, `message` for
 * people.
 */
export abstract class LocalError extends Error {
  abstract readonly kind: string;
}

/** The connection ended before an answer arrived. The call may have taken effect. */
export class ConnectionClosedError extends LocalError {
  override readonly name = "ConnectionClosedError";
  readonly kind = "connection_closed";
  /** WebSocket close code: 1000 after `close()`, 1006 when the socket broke, 1013 when this client read too slowly. */
  readonly code: number;
  readonly reason: string;

  /** The method whose answer was lost, if the error belongs to one call. */
  readonly method: string | undefined;

  constructor(end: SocketEnd, method?: string) {
    const why = end.reason === "" ? `code ${end.code}` : `code ${end.code}: ${end.reason}`;
    const lost = method === undefined ? "" : ` before ${method} was answered: the call may have taken effect`;
    super(`The connection to the daemon ended (${why})${lost}.`, end.error === undefined ? {} : { cause: end.error });
    this.code = end.code;
    this.reason = end.reason;
    this.method = method;
  }
}

/** The connection was lost, and reconnecting failed for `reconnect.giveUpAfterMs`. `cause`: the last attempt's error. */
export class ReconnectFailedError extends LocalError {
  override readonly name = "ReconnectFailedError";
  readonly kind = "reconnect_failed";
  /** The number of attempts. */
  readonly attempts: number;
  readonly elapsedMs: number;

  constructor(tries: { readonly attempts: number; readonly elapsedMs: number; readonly cause: unknown }) {
    const { attempts, elapsedMs, cause } = tries;
    const last = cause instanceof Error ? ` The last error: ${cause.message}` : "";
    super(
      `The connection to the daemon was lost, and ${attempts} attempts to reconnect in ${Math.round(elapsedMs)} ms failed.${last}`,
      { cause },
    );
    this.attempts = attempts;
    this.elapsedMs = elapsedMs;
  }
}

/** The connection is lost and the limit of waiting calls is reached. This call was not sent. */
export class WaitingOverflowError extends LocalError {
  override readonly name = "WaitingOverflowError";
  readonly kind = "waiting_overflow";

  constructor(method: string, limit: string) {
    super(`${method} was not sent: the connection to the daemon is lost, and the waiting calls have reached ${limit}.`);
  }
}

/** Something answered at the address, but the connection failed. */
export class ConnectionFailedError extends LocalError {
  override readonly name = "ConnectionFailedError";
  readonly kind = "connection_failed";
  /** HTTP status of the refusal, if there was one. */
  readonly status: number | undefined;

  constructor(message: string, options: { readonly status?: number; readonly cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : {});
    this.status = options.status;
  }
}

/**
 * Why no daemon was found. `missing`, `unreadable`, `malformed`: the fault of `daemon.json`; `stale`: the file exists, but
 * its daemon has ended; `refused`: nothing listens at the address.
 */
export type NotRunningReason = "missing" | "unreadable" | "malformed" | "stale" | "refused";

export class DaemonNotRunningError extends LocalError {
  override readonly name = "DaemonNotRunningError";
  readonly kind = "daemon_not_running";
  readonly reason: NotRunningReason;
  /** What was looked for, and where. */
  readonly detail: string;

  constructor(reason: NotRunningReason, detail: string, options: ErrorOptions & { readonly advice?: string } = {}) {
    const { advice = "Start one with `pi-rpcd start`.", ...others } = options;
    super(`No pi-rpcd daemon was found: ${detail}. ${advice}`, others);
    this.reason = reason;
    this.detail = detail;
  }
}

/** `connect({ start: true })` could not start a daemon. */
export class DaemonStartError extends LocalError {
  override readonly name = "DaemonStartError";
  readonly kind = "daemon_start_failed";
  /** The name of the command line's error, such as `pi_not_found` or `state_dir_unusable`. */
  readonly reason: string;

  constructor(reason: string, message: string, cause?: unknown) {
    super(`The daemon could not be started: ${message} (${reason})`, cause === undefined ? {} : { cause });
    this.reason = reason;
  }
}

/** The variable `HOME` is set to an empty text, so the default paths below the home directory are unknown. */
export class HomeEmptyError extends LocalError {
  override readonly name = "HomeEmptyError";
  readonly kind = "home_empty";

  constructor() {
    super("The environment variable HOME is empty. Set it to your home directory, or unset it.");
  }
}

/** The daemon requires a token, and none or a wrong one was sent. */
export class UnauthorizedError extends LocalError {
  override readonly name = "UnauthorizedError";
  readonly kind = "unauthorized";

  constructor(where: string, sentToken: boolean) {
    super(
      sentToken
        ? `The daemon at ${where} does not accept the token. It may have been rotated: read daemon.json again.`
        : `The daemon at ${where} requires a token. Set \`token\`, or the \`stateDir\` whose daemon.json names this address.`,
    );
  }
}

/** The daemon of the given `instance` has ended: another process is at its address. It was asked only who it is. */
export class AnotherDaemonError extends LocalError {
  override readonly name = "AnotherDaemonError";
  readonly kind = "another_daemon";

  constructor() {
    super("Another daemon is at the address: the one that this client belongs to has ended.");
  }
}

/** Daemon and client speak different versions of the protocol. */
export class ProtocolMismatchError extends LocalError {
  override readonly name = "ProtocolMismatchError";
  readonly kind = "protocol_mismatch";
  readonly clientProtocol: number;
  readonly daemonProtocol: number;

  constructor(versions: { readonly client: number; readonly daemon: number; readonly daemonVersion: string }) {
    const advice =
      versions.daemon < versions.client ? "restart the daemon from the newer package" : "upgrade this package";
    super(
      `The daemon (pi-rpcd ${versions.daemonVersion}) speaks protocol ${versions.daemon}, ` +
        `this client protocol ${versions.client}: ${advice}.`,
    );
    this.clientProtocol = versions.client;
    this.daemonProtocol = versions.daemon;
  }
}

/** A time limit of this library was reached. An `AbortSignal` of the caller rejects with its own reason instead. */
export class TimeoutError extends LocalError {
  override readonly name = "TimeoutError";
  readonly kind = "timeout";
}

/** The call was not sent because this version of the library does not know the method. */
export class UnknownMethodError extends LocalError {
  override readonly name = "UnknownMethodError";
  readonly kind = "unknown_method";
  readonly method: string;

  constructor(method: string) {
    super(`"${method}" was not sent: this version of the library does not know the method.`);
    this.method = method;
  }
}

/** The params were not sent because they do not match the method's schema. */
export class InvalidParamsError extends LocalError {
  override readonly name = "InvalidParamsError";
  readonly kind = "invalid_params";
  readonly method: string;
  readonly findings: readonly ParamsFinding[];

  constructor(method: string, findings: readonly ParamsFinding[]) {
    super(`${method} was not sent: ${sentence(findings)}.`);
    this.method = method;
    this.findings = findings;
  }
}

/** The daemon sent something that violates the protocol (checked with `validateResults`). */
export class ProtocolViolationError extends LocalError {
  override readonly name = "ProtocolViolationError";
  readonly kind = "protocol_violation";
  /** The method or notification. */
  readonly subject: string;
  readonly findings: readonly ParamsFinding[];

  constructor(subject: string, findings: readonly ParamsFinding[]) {
    super(`The daemon's ${subject} violates the protocol: ${sentence(findings)}.`);
    this.subject = subject;
    this.findings = findings;
  }
}

/** The daemon's error is not in this client's catalogue, because the daemon is newer. */
export class UnknownDaemonError extends LocalError {
  override readonly name = "UnknownDaemonError";
  readonly kind = "unknown_daemon_error";
  readonly code: number;
  readonly data: unknown;

  constructor(error: { readonly code: number; readonly message: string; readonly data?: unknown }) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
  }
}

/** The reader of a stream was too slow. Everything buffered was read; resume with `{ after: resumeAfter }`. */
export class BufferOverflowError extends LocalError {
  override readonly name = "BufferOverflowError";
  readonly kind = "buffer_overflow";
  /** The seq of the last buffered envelope, in a stream of events. */
  readonly resumeAfter: number | undefined;

  constructor(limit: string, resumeAfter?: number) {
    const resume = resumeAfter === undefined ? "" : ` Resume with { after: ${resumeAfter} }.`;
    super(`The stream was read too slowly: ${limit} was reached.${resume}`);
    this.resumeAfter = resumeAfter;
  }
}

/**
 * A range of a session's log that a reader does not get. `unreported`: the numbers did not arrive and the daemon did not
 * say why, which is a fault of the daemon or of this library.
 */
export type EventGap = Gap | (Omit<Gap, "reason"> & { readonly reason: "unreported" });

/** Events after the requested cursor cannot be replayed. A stream with `onGap` continues instead. */
export class EventGapError extends LocalError {
  override readonly name = "EventGapError";
  readonly kind = "event_gap";
  readonly gap: EventGap;

  constructor(gap: EventGap) {
    super(`Events ${gap.from} to ${gap.to} cannot be replayed (${gap.reason}). Set onGap to continue without them.`);
    this.gap = gap;
  }
}

/** A delivery ended, or was parked, without reaching the awaited state. `delivery` is its record. */
export class DeliveryError extends LocalError {
  override readonly name = "DeliveryError";
  readonly kind = "delivery";
  readonly delivery: Delivery;
  readonly until: WaitUntil;

  constructor(delivery: Delivery, until: WaitUntil) {
    const { reason } = delivery;
    const why = reason === undefined ? "" : ` (${reason.code}: ${reason.message})`;
    super(`Delivery ${delivery.deliveryId} did not reach "${until}": it is ${delivery.state}${why}`);
    this.delivery = delivery;
    this.until = until;
  }
}

/** The outcome of a prompt. */
export interface SettledRun {
  readonly promptId: string;
  /** `handled`: an extension or command handled the prompt without a run. */
  readonly disposition: PromptResult["disposition"];
  /** The prompt's state: `inserted`, unless it was `handled`, `withdrawn` from the queue, or `lost` with its pi. */
  readonly state: PromptState;
  readonly runId?: string;
  /** How the run ended; absent if there was none. */
  readonly outcome?: RunOutcome;
  /** The text of the run's last assistant message, at most 64 KiB of it; empty if there was none or it is no longer known. */
  readonly text: string;
  readonly textTruncated?: boolean;
  /** pi's word for how that message ended: `stop`, `length`, `toolUse`, `error`, `aborted`. */
  readonly stopReason?: string;
  readonly errorMessage?: string;
}

/** pi or the daemon ended during a prompt's run (`run`), or the session was closed (no `run`). */
export class RunInterruptedError extends LocalError {
  override readonly name = "RunInterruptedError";
  readonly kind = "run_interrupted";
  readonly run: SettledRun | undefined;

  constructor(sessionId: string, run?: SettledRun) {
    super(
      run === undefined
        ? `Session ${sessionId} was closed before the run settled.`
        : `The run of session ${sessionId} was interrupted: pi ended during it. The prompt is ${run.state}.`,
    );
    this.run = run;
  }
}

/** The run failed, because its last answer is an error and pi no longer retries, or it was aborted. */
export class RunFailedError extends LocalError {
  override readonly name = "RunFailedError";
  readonly kind = "run_failed";
  readonly run: SettledRun;

  constructor(run: SettledRun) {
    super(
      `The run ${run.outcome === "aborted" ? "was aborted" : "failed"}${run.errorMessage === undefined ? "" : `: ${run.errorMessage}`}`,
    );
    this.run = run;
  }
}

/** How many findings the message lists; the error has all of them. */
const maxShownFindings = 8;

function sentence(findings: readonly ParamsFinding[]): string {
  const shown = findings.slice(0, maxShownFindings);
  const more = findings.length > shown.length ? [`and ${findings.length - shown.length} more`] : [];
  return [...shown.map(({ path, message }) => `${path === "" ? "the value" : path} ${message}`), ...more].join("; ");
}
