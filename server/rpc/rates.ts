import { WireError } from "../../protocol/errors.ts";
import type { MethodRow, RateClass } from "../../protocol/method-row.ts";
import { RateWindow } from "../lib/rate-window.ts";
import type { Call, Policy } from "./call.ts";
import type { Grant } from "./grant.ts";
import { isGiven, paramOf } from "./params.ts";

export interface RateLimits {
  /** The window in which a token may make the following numbers of calls. */
  readonly windowMs: number;
  /** Calls that may start a pi of their own, and those that start the pi of a session without one. */
  readonly maxStarts: number;
  /** Calls that give a model work. */
  readonly maxPrompts: number;
  readonly maxPushes: number;
}

export interface RateOptions {
  readonly limits: RateLimits;
  /** Whether a session has no pi. */
  readonly isAsleep: (sessionId: string) => boolean;
  /** Milliseconds of a monotonic clock. Default: that of the process. */
  readonly now?: () => number;
}

const limitOf = {
  starts: "maxStarts",
  prompts: "maxPrompts",
  pushes: "maxPushes",
} as const satisfies Readonly<Record<RateClass, keyof RateLimits>>;

/** Refuses calls above the rate of their token with `overloaded`, and says when the next one is allowed. */
export function rateLimit({ limits, isAsleep, now = () => performance.now() }: RateOptions): Policy {
  const withoutToken = {};
  const windows: Readonly<Record<RateClass, WeakMap<Grant | object, RateWindow>>> = {
    starts: new WeakMap(),
    prompts: new WeakMap(),
    pushes: new WeakMap(),
  };

  const count = (rate: RateClass, { grant }: Call): void => {
    const { [limitOf[rate]]: max, windowMs } = limits;
    const token = grant ?? withoutToken;
    const window = windows[rate].get(token) ?? new RateWindow({ max, windowMs });
    windows[rate].set(token, window);
    const at = now();
    if (window.add(at)) return;
    const message = `${max} such calls in ${windowMs / 1_000} s is the limit of a token.`;
    throw new WireError("overloaded", message, { retryAfterMs: Math.max(1, Math.ceil(window.restMs(at))) });
  };

  return ({ row }, next) => {
    const { rate, asleep, startsWith } = row;
    const mayStart = asleep === "wake" || startsWith !== undefined;
    if (rate === undefined && !mayStart) return next;
    return (params, call) => {
      if (rate !== undefined) count(rate, call);
      if (mayStart && startsPi(row, params, isAsleep)) count("starts", call);
      return next(params, call);
    };
  };
}

function startsPi(
  { asleep, wakesWith, startsWith }: MethodRow,
  params: object,
  isAsleep: (sessionId: string) => boolean,
): boolean {
  if (isGiven(paramOf(params, "cached"))) return false;
  const sessionId = paramOf(params, "sessionId");
  if (typeof sessionId !== "string") return startsWith !== undefined && isGiven(paramOf(params, startsWith));
  if (asleep !== "wake" || !isAsleep(sessionId)) return false;
  return wakesWith === undefined || isGiven(paramOf(params, wakesWith));
}
