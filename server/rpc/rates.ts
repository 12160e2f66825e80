import { WireError } from "../../protocol/errors.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import { type MethodName, methods } from "../../protocol/methods.ts";
import { RateWindow } from "../lib/rate-window.ts";
import type { Call, Handlers } from "./call.ts";
import type { Grant } from "./grant.ts";

export interface RateLimits {
  /** The time in which so many may come of one token. */
  readonly windowMs: number;
  /** Calls that may start a pi of their own, and those that start the pi of a session that has none. */
  readonly maxStarts: number;
  /** Calls that give a model something to do. */
  readonly maxPrompts: number;
  /** Pushes. */
  readonly maxPushes: number;
}

type Rate = Exclude<keyof RateLimits, "windowMs">;

/** Which rate a method counts for. Others are bounded by how many may wait. */
const rateOf = new Map<MethodName, Rate>([
  ["session/create", "maxStarts"],
  ["session/open", "maxStarts"],
  ["session/fork", "maxStarts"],
  ["session/clone", "maxStarts"],
  ["session/reload", "maxStarts"],
  ["context/inspect", "maxStarts"],
  ["context/export", "maxStarts"],
  ["session/prompt", "maxPrompts"],
  ["session/steer", "maxPrompts"],
  ["session/followUp", "maxPrompts"],
  ["session/compact", "maxPrompts"],
  ["pruning/compress", "maxPrompts"],
  ["delivery/resend", "maxPrompts"],
  ["delivery/push", "maxPushes"],
]);

type Given = Readonly<Record<string, unknown>>;
type AnyHandler = (params: Given, call: Call) => unknown;

/**
 * Refuses calls that come faster than a token may make them with `overloaded`, and says when there is room again. `isAsleep`
 * says whether a session has no pi.
 */
export function rated(
  handlers: Handlers,
  limits: RateLimits,
  isAsleep: (sessionId: string) => boolean,
  now = () => performance.now(),
): Handlers {
  const nobody = {};
  const windows: Readonly<Record<Rate, WeakMap<Grant | object, RateWindow>>> = {
    maxStarts: new WeakMap(),
    maxPrompts: new WeakMap(),
    maxPushes: new WeakMap(),
  };

  const count = (rate: Rate, { grant }: Call): void => {
    const { [rate]: max, windowMs } = limits;
    const whose = grant ?? nobody;
    const window = windows[rate].get(whose) ?? new RateWindow({ max, windowMs });
    windows[rate].set(whose, window);
    const at = now();
    if (window.add(at)) return;
    const message = `${max} such calls in ${windowMs / 1_000} s is the limit of a token.`;
    throw new WireError("overloaded", message, { retryAfterMs: Math.max(1, Math.ceil(window.restMs(at))) });
  };

  const wrap = (method: MethodName, handler: AnyHandler): AnyHandler => {
    const rate = rateOf.get(method);
    const mayStart = (methods[method] as MethodRow).asleep === "wake";
    if (rate === undefined && !mayStart) return handler;
    return (params, call) => {
      if (rate !== undefined) count(rate, call);
      if (mayStart && startsPi(method, params, isAsleep)) count("maxStarts", call);
      return handler(params, call);
    };
  };

  return Object.fromEntries(
    Object.entries(handlers).map(([method, handler]) => [method, wrap(method as MethodName, handler as never)]),
  ) as unknown as Handlers;
}

function startsPi(method: MethodName, params: Given, isAsleep: (sessionId: string) => boolean): boolean {
  const { sessionId, refresh, awake } = params;
  if (typeof sessionId !== "string") return refresh === true;
  return isAsleep(sessionId) && (method !== "session/subscribe" || (awake !== undefined && awake !== false));
}
