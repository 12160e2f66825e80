import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { type Engine, findEngine } from "../engine-port.ts";
import { findOrOpenEngine } from "../open.ts";
import { NotOpenError, SessionReplacedError } from "./errors.ts";

/**
 * Enables deliveries in this pi. Call it in the extension's entry function, because delivery must see pi's events from
 * the start. Repeated calls, also by the helper or other extensions, have no effect. Works in every mode of pi, with
 * and without the daemon.
 */
export function openDelivery(pi: ExtensionAPI): void {
  openEngine(pi);
}

/**
 * Returns the engine of the session's current extension instances. Throws {@link NotOpenError} when no engine exists
 * and loading is over, and {@link SessionReplacedError} when these instances have ended.
 */
export function openEngine(pi: ExtensionAPI): Engine {
  let engine: Engine | undefined;
  try {
    engine = findEngine(pi);
  } catch {
    throw new SessionReplacedError();
  }
  if (engine !== undefined) return engine;
  if (!isLoading(pi)) throw new NotOpenError();
  return findOrOpenEngine(pi);
}

/** While extensions are loaded, pi's actions throw. */
function isLoading(pi: ExtensionAPI): boolean {
  try {
    pi.getThinkingLevel();
    return false;
  } catch {
    return true;
  }
}
