import { isAtLeast, parseVersion, type Version } from "./version.ts";

/** The first pi with `context_with_system`, on which receipts rest. */
export const oldestSupportedPi: Version = [0, 87, 0];

/** What a pi can do. The one place where versions are compared. */
export interface Capabilities {
  /** Responses to prompts say `disposition`. Without it the daemon finds it out by a `get_state` behind the response. */
  readonly promptDisposition: boolean;
  /** `agent_settled` says whether the run was aborted. */
  readonly settledAborted: boolean;
}

export function capabilitiesOf(version: string): Capabilities {
  const parsed = parseVersion(version) ?? oldestSupportedPi;
  return {
    promptDisposition: isAtLeast(parsed, [0, 99, 0]),
    settledAborted: isAtLeast(parsed, [1, 1, 0]),
  };
}
