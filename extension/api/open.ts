import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { findOrStartEngine } from "../engine.ts";
import { type Engine, findEngine } from "../engine-port.ts";
import { NotOpenError, SessionReplacedError } from "./errors.ts";

/**
 * Makes deliveries possible in this pi. Call it in the extension's entry function: what delivers must see pi's events
 * from the first on. Where pi-rpcd's helper or another extension has done so, nothing happens; the order does not matter.
 * Works in every mode of pi, with and without the daemon.
 */
export function openDelivery(pi: ExtensionAPI): void {
  openEngine(pi);
}

/**
 * The engine of this life of the session's extensions. Throws {@link NotOpenError} where nobody has started one and it
 * is too late to, and {@link SessionReplacedError} when this life has ended.
 */
export function openEngine(pi: ExtensionAPI): Engine {
  let found: Engine | undefined;
  try {
    found = findEngine(pi);
  } catch {
    throw new SessionReplacedError();
  }
  if (found !== undefined) return found;
  if (!isLoading(pi)) throw new NotOpenError();
  return findOrStartEngine(pi);
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
