import type { PiCapabilities } from "../../protocol/daemon.ts";
import { WireError } from "../../protocol/errors.ts";
import type { PiOptions, PiProgram } from "./spawn-options.ts";
import { isAtLeast, type Version } from "./version.ts";

/** The oldest tested pi. Receipts depend on `context_with_system`, which pi has since 0.87. */
export const oldestSupportedPi: Version = [0, 87, 1];

/** The capabilities of a version of pi. Versions are compared only here. */
export function capabilitiesOf(version: Version): PiCapabilities {
  return {
    promptDisposition: isAtLeast(version, [0, 99, 0]),
    builtinExtensions: isAtLeast(version, [0, 99, 0]),
    noMcp: isAtLeast(version, [1, 0, 4]),
    mcpServers: isAtLeast(version, [1, 0, 3]),
    settledAborted: isAtLeast(version, [1, 1, 0]),
  };
}

/** Throws `unsupported_by_pi` for an option that this pi does not have. */
export function requireOptions({ version, capabilities }: PiProgram, { noMcp, extensions = [] }: PiOptions): void {
  if (noMcp === true && capabilities.noMcp !== true) {
    throw new WireError("unsupported_by_pi", `pi ${version} has no option to start without MCP.`, { option: "noMcp" });
  }
  // It would take it for a path.
  const own = extensions.find((extension) => extension.startsWith("builtin:"));
  if (own === undefined || capabilities.builtinExtensions === true) return;
  throw new WireError("unsupported_by_pi", `pi ${version} cannot load ${own}.`, { option: "extensions" });
}

/** Throws `unsupported_by_pi` if this pi cannot get MCP servers from an extension. */
export function requireMcpServers({ version, capabilities }: PiProgram): void {
  if (capabilities.mcpServers === true) return;
  throw new WireError("unsupported_by_pi", `pi ${version} takes no MCP servers.`, { option: "mcpServers" });
}
