import { isRecord } from "../../protocol/objects.ts";
import { hasAnyPrice } from "../../protocol/prices.ts";
import type { ModelRef } from "../../protocol/session.ts";

/** What pi reported about itself when it was ready. */
export interface ReadyState {
  readonly model: ModelRef | undefined;
  /** Whether the model has any price. */
  readonly hasPrices: boolean;
  /** Of the model, in tokens. */
  readonly contextWindow: number | undefined;
  readonly thinkingLevel: string | undefined;
  readonly sessionName: string | undefined;
}

/** The session's settings from pi's answer to `get_state`. Without any model pi reports "unknown". */
export function readyState(data: unknown): ReadyState {
  const state = isRecord(data) ? data : {};
  const model = state["model"];
  return {
    model:
      isRecord(model) && model["id"] !== "unknown"
        ? { provider: String(model["provider"]), id: String(model["id"]) }
        : undefined,
    hasPrices: isRecord(model) && hasAnyPrice(model["cost"]),
    contextWindow: isRecord(model) ? windowOf(model["contextWindow"]) : undefined,
    thinkingLevel: typeof state["thinkingLevel"] === "string" ? state["thinkingLevel"] : undefined,
    sessionName: typeof state["sessionName"] === "string" ? state["sessionName"] : undefined,
  };
}

function windowOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}
