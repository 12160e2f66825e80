import type { PiCapabilities } from "../../protocol/daemon.ts";
import { isAtLeast, type Version } from "./version.ts";

/** The oldest pi that this is tested with. Receipts rest on `context_with_system`, which came with 0.87. */
export const oldestSupportedPi: Version = [0, 87, 1];

/** What a pi can do. The one place where versions are compared. */
export function capabilitiesOf(version: Version): PiCapabilities {
  return {
    promptDisposition: isAtLeast(version, [0, 99, 0]),
    settledAborted: isAtLeast(version, [1, 1, 0]),
  };
}
