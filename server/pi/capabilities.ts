import type { PiCapabilities } from "../../protocol/daemon.ts";
import { isAtLeast, type Version } from "./version.ts";

/** The first pi with `context_with_system`, on which receipts rest. */
export const oldestSupportedPi: Version = [0, 87, 0];

/** What a pi can do. The one place where versions are compared. */
export function capabilitiesOf(version: Version): PiCapabilities {
  return {
    promptDisposition: isAtLeast(version, [0, 99, 0]),
    settledAborted: isAtLeast(version, [1, 1, 0]),
  };
}
