import { randomBytes } from "node:crypto";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { type Part, startHelper } from "./helper.ts";
import { takeHelperConfig } from "./link/config.ts";
import { processMemory } from "./memory.ts";
import { messageOf } from "./pi-types.ts";

export interface OpenOptions {
  /** URL of the entry module. pi may load several copies of the helper: the first one keeps the link. */
  readonly entry: string;
  readonly parts?: readonly Part[];
}

/**
 * Opens the link to the daemon that has left its configuration in the environment. Without one it does nothing. pi calls
 * an extension's entry anew at each reload or replacement of the session; the link stays what it was.
 */
export function openHelper(pi: ExtensionAPI, { entry, parts = [] }: OpenOptions): void {
  const memory = processMemory();
  memory.owner ??= entry;
  if (memory.owner !== entry) return;
  try {
    const config = takeHelperConfig(process.env);
    if (config !== undefined) memory.link = { statusKey: config.statusKey, command: mintCommand() };
  } catch (thrown) {
    // The daemon, which waits for a hello, reads pi's stderr.
    process.stderr.write(`pi-rpcd: the helper extension has no link to its daemon. ${messageOf(thrown)}\n`);
  }
  if (memory.link !== undefined) startHelper(pi, { memory, link: memory.link, parts });
}

function mintCommand(): string {
  return `pi-rpcd-${randomBytes(16).toString("hex")}`;
}
