import { randomBytes } from "node:crypto";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { HelperConfig } from "../protocol/link.ts";
import { findOrStartEngine } from "./engine.ts";
import type { Part } from "./engine-port.ts";
import { linkToDaemon } from "./helper.ts";
import { takeHelperConfig } from "./link/config.ts";
import { isLinkKept } from "./memory.ts";
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
  const given = takeConfig();
  if (given === undefined && !isLinkKept(entry)) return;
  const engine = findOrStartEngine(pi);
  if (engine.memory.link === undefined && given !== undefined) {
    const { statusKey, contextWithinMs, isOnlyAsked } = given;
    engine.memory.link = { owner: entry, statusKey, command: `pi-rpcd-${randomBytes(16).toString("hex")}` };
    if (contextWithinMs !== undefined) engine.memory.contextDueBy = performance.now() + contextWithinMs;
    engine.memory.isOnlyAsked = isOnlyAsked === true;
  }
  const { link } = engine.memory;
  if (link?.owner !== entry) return;
  for (const part of parts) engine.add(part);
  linkToDaemon(pi, engine, link);
}

function takeConfig(): HelperConfig | undefined {
  try {
    return takeHelperConfig(process.env);
  } catch (thrown) {
    // The daemon, which waits for a hello, reads pi's stderr.
    process.stderr.write(`pi-rpcd: the helper extension has no link to its daemon. ${messageOf(thrown)}\n`);
    return undefined;
  }
}
