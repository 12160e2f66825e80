import { WireError } from "../../protocol/errors.ts";
import type { MethodName } from "../../protocol/methods.ts";
import { RateWindow } from "../lib/rate-window.ts";
import type { Call, Handlers } from "./call.ts";
import type { Grant } from "./grant.ts";

export interface RateLimits {
  /** The time in which so many may come of one token. */
  readonly windowMs: number;
  /** Calls that may start a pi of their own. */
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
  ["session/prompt", "maxPrompts"],
  ["session/steer", "maxPrompts"],
  ["session/followUp", "maxPrompts"],
  ["delivery/resend", "maxPrompts"],
  ["delivery/push", "maxPushes"],
]);

type AnyHandler = (params: unknown, call: Call) => unknown;

/** Refuses calls that come faster than a token may make them with `overloaded`, and says when there is room again. */
export function rated(handlers: Handlers, limits: RateLimits, now = () => performance.now()): Handlers {
  const nobody = {};
  const windows: Readonly<Record<Rate, WeakMap<Grant | object, RateWindow>>> = {
    maxStarts: new WeakMap(),
    maxPrompts: new WeakMap(),
    maxPushes: new WeakMap(),
  };

  const wrap = (method: MethodName, handler: AnyHandler): AnyHandler => {
    const rate = rateOf.get(method);
    if (rate === undefined) return handler;
    const { [rate]: max, windowMs } = limits;
    return (params, call) => {
      const whose = call.grant ?? nobody;
      const window = windows[rate].get(whose) ?? new RateWindow({ max, windowMs });
      windows[rate].set(whose, window);
      const at = now();
      if (window.add(at)) return handler(params, call);
      const message = `${max} such calls in ${windowMs / 1_000} s is the limit of a token.`;
      throw new WireError("overloaded", message, { retryAfterMs: Math.max(1, Math.ceil(window.restMs(at))) });
    };
  };

  return Object.fromEntries(
    Object.entries(handlers).map(([method, handler]) => [method, wrap(method as MethodName, handler as never)]),
  ) as unknown as Handlers;
}
