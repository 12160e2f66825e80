import { WireError } from "../protocol/errors.ts";
import { ProtocolMismatchError, UnauthorizedError } from "./local-errors.ts";

/** How a client that has lost its connection makes another. */
export interface ReconnectOptions {
  /** The longest delay before the first try, in milliseconds; each further try may wait twice as long. Default: 100. */
  readonly firstDelayMs?: number;
  /** The delay grows up to this. Default: 10000. */
  readonly maxDelayMs?: number;
  /**
   * How much of each delay is left to chance, from 0 (nothing) to 1 (all of it), so that many clients of one daemon do
   * not come back in the same moment. Default: 0.5.
   */
  readonly jitter?: number;
  /** No try begins later than this after the loss: `ReconnectFailedError`. `Infinity`: never. Default: 300000. */
  readonly giveUpAfterMs?: number;
  /** Ends the tries, those of an outage that is on too; does nothing to a connection that stands. */
  readonly signal?: AbortSignal;
  /** How many calls may wait for the connection. Further ones reject with `WaitingOverflowError`. Default: 1000. */
  readonly maxWaitingCalls?: number;
  /** The same in UTF-16 units of their params as JSON. Default: 67108864. */
  readonly maxWaitingChars?: number;
}

export type ReconnectPolicy = Required<Omit<ReconnectOptions, "signal">> & Pick<ReconnectOptions, "signal">;

/** What stands before the next try. */
export interface Outage {
  /** The number of the next try, from 1. It counts on over connections that did not last. */
  readonly attempt: number;
  /** Since the connection was lost. */
  readonly elapsedMs: number;
  /** From 0 to 1, by chance. */
  readonly random: number;
}

export type NextTry = { readonly kind: "after"; readonly delayMs: number } | { readonly kind: "give_up" };

/** A connection that has lasted this long ends an outage: the next one begins with the first delay again. */
export const stableAfterMs = 5_000;

/** The options with their defaults; undefined when the client shall not reconnect. Throws a `RangeError`. */
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
    if (!isGood) throw new RangeError(`reconnect.${name} cannot be ${value}.`);
  }
  return policy;
}

/** When to try next. The last try falls on the very end of `giveUpAfterMs`. */
export function nextTry(policy: ReconnectPolicy, { attempt, elapsedMs, random }: Outage): NextTry {
  const leftMs = policy.giveUpAfterMs - elapsedMs;
  if (leftMs <= 0) return { kind: "give_up" };
  const longest = Math.min(policy.maxDelayMs, policy.firstDelayMs * 2 ** Math.min(attempt - 1, 52));
  return { kind: "after", delayMs: Math.min(longest * (1 - policy.jitter * random), leftMs) };
}

/** Whether no further try can mend what a try failed with. */
export function isFinal(error: unknown): boolean {
  if (error instanceof WireError) return error.kind === "unauthorized" || error.kind === "forbidden";
  // A TypeError is an address that is none.
  return error instanceof UnauthorizedError || error instanceof ProtocolMismatchError || error instanceof TypeError;
}
