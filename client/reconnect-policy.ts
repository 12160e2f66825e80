import { WireError } from "../protocol/errors.ts";
import { AnotherDaemonError, ProtocolMismatchError, UnauthorizedError } from "./local-errors.ts";

/** How a client reconnects after a lost connection. */
export interface ReconnectOptions {
  /** The longest delay before the first attempt, in milliseconds; it doubles with each attempt. Default: 100. */
  readonly firstDelayMs?: number;
  /** The delay grows up to this. Default: 10000. */
  readonly maxDelayMs?: number;
  /**
   * The random part of each delay, from 0 (none) to 1 (all of it), so that the clients of a daemon do not reconnect at the
   * same moment. Default: 0.5.
   */
  readonly jitter?: number;
  /** No attempt starts later than this after the loss: `ReconnectFailedError`. `Infinity`: no limit. Default: 300000. */
  readonly giveUpAfterMs?: number;
  /** Ends the attempts, also those of a current outage; does not affect an open connection. */
  readonly signal?: AbortSignal;
  /** How many calls may wait for the connection. Later calls reject with `WaitingOverflowError`. Default: 1000. */
  readonly maxWaitingCalls?: number;
  /** The same in UTF-16 units of their params as JSON. Default: 67108864. */
  readonly maxWaitingChars?: number;
}

export type ReconnectPolicy = Required<Omit<ReconnectOptions, "signal">> & Pick<ReconnectOptions, "signal">;

/** The state of an outage before the next attempt. */
export interface Outage {
  /** The number of the next attempt, from 1. Connections that were not stable do not reset it. */
  readonly attempt: number;
  /** Since the connection was lost. */
  readonly elapsedMs: number;
  /** A random number from 0 to 1. */
  readonly random: number;
}

export type NextTry = { readonly kind: "after"; readonly delayMs: number } | { readonly kind: "give_up" };

/** A connection that lasts this long ends an outage: the next outage starts with the first delay. */
export const stableAfterMs = 5_000;

/** Returns the options with their defaults; undefined if the client must not reconnect. Throws a `RangeError`. */
export function reconnectPolicy(options: boolean | ReconnectOptions = true): ReconnectPolicy | undefined {
  if (options === false) return undefined;
  const given = options === true ? {} : options;
  const policy: ReconnectPolicy = {
    firstDelayMs: given.firstDelayMs ?? 100,
    maxDelayMs: given.maxDelayMs ?? 10_000,
    jitter: given.jitter ?? 0.5,
    giveUpAfterMs: given.giveUpAfterMs ?? 300_000,
    maxWaitingCalls: given.maxWaitingCalls ?? 1_000,
    maxWaitingChars: given.maxWaitingChars ?? 67_108_864,
    ...(given.signal !== undefined && { signal: given.signal }),
  };
  for (const [name, value] of Object.entries(policy)) {
    const isGood = typeof value !== "number" || (value >= 0 && (name !== "jitter" || value <= 1));
    if (!isGood) throw new RangeError(`reconnect.${name} must not be ${value}.`);
  }
  return policy;
}

/** Returns when the next attempt starts. The last attempt starts at the end of `giveUpAfterMs`. */
export function nextTry(policy: ReconnectPolicy, { attempt, elapsedMs, random }: Outage): NextTry {
  const leftMs = policy.giveUpAfterMs - elapsedMs;
  if (leftMs <= 0) return { kind: "give_up" };
  const longest = Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** Math.min(attempt - 1, 52));
  return { kind: "after", delayMs: Math.min(longest * (1 - policy.jitter * random), leftMs) };
}

/** Whether a later attempt would fail with the same error. */
export function isFinal(error: unknown): boolean {
  if (error instanceof WireError) return error.kind === "unauthorized" || error.kind === "forbidden";
  // A TypeError means an invalid address.
  return (
    error instanceof UnauthorizedError ||
    error instanceof ProtocolMismatchError ||
    error instanceof AnotherDaemonError ||
    error instanceof TypeError
  );
}
