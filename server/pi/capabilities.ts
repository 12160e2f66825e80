import type { PiCapabilities } from "../../protocol/daemon.ts";
import { isAtLeast, type Version } from "./version.ts";

/** The oldest tested pi. Receipts depend on `context_with_system`, which pi has since 0.87. */
export const oldestSupportedPi: Version = [0, 87, 1];

/** The capabilities of a version of pi. Versions are compared only here. */
export function capabilitiesOf(version: Version): PiCapabilities {
  return {
    promptDisposition: isAtLeast(version, [0, 99, 0]),
    settledAborted: isAtLeast(version, [1, 1, 0]),
  };
}
