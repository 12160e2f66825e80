import { randomBytes } from "node:crypto";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { HelperConfig } from "../protocol/link.ts";
import { findOrStartEngine } from "./engine.ts";
import type { Engine, Part } from "./engine-port.ts";
import { linkToDaemon } from "./helper.ts";
import { inspecting } from "./inspecting.ts";
import { endStartEnvironment, takeHelperConfig } from "./link/config.ts";
import { isLinkKept } from "./memory.ts";
import { messageOf } from "./pi-types.ts";
import { tree } from "./tree.ts";

export interface OpenOptions {
  /** URL of the entry module. pi may load several copies of the helper: the first one keeps the link. */
  readonly entry: string;
  readonly parts?: readonly Part[];
}

/**
 * Opens the link to the daemon that has left its configuration in the environment. Without one it does nothing. pi calls
 * an extension's entry anew at each reload or replacement of the session; the link stays what it was.
 */
export function openHelper(pi: ExtensionAPI, { entry, parts = [] }: OpenOptions): Promise<void> | undefined {
  const given = takeConfig();
  if (given === undefined && !isLinkKept(entry)) return undefined;
  if (given !== undefined) beginOnce(pi, given);
  const engine = findOrStartEngine(pi);
  if (engine.memory.link === undefined && given !== undefined) {
    const { statusKey, contextWithinMs, isOnlyAsked } = given;
    engine.memory.link = { owner: entry, statusKey, command: `pi-rpcd-${randomBytes(16).toString("hex")}` };
    if (contextWithinMs !== undefined) engine.memory.contextDueBy = performance.now() + contextWithinMs;
    engine.memory.isOnlyAsked = isOnlyAsked === true;
    engine.memory.customUi = given.customUi;
    engine.memory.parts = given.parts;
  }
  const { link } = engine.memory;
  if (link?.owner !== entry) return undefined;
  for (const part of parts) engine.add(part);
  engine.add(inspecting);
  engine.add(tree);
  const contextParts = contextPartsOf(engine);
  linkToDaemon(pi, engine, link, contextParts);
  return contextParts();
}

/**
 * Loads what optimises and prunes, once there is a configuration for it: a pi without one is not to pay for their modules.
 * When they cannot be loaded, pi goes on without them.
 */
function contextPartsOf(engine: Engine): () => Promise<void> | undefined {
  let loading: Promise<void> | undefined;
  return () => {
    if (engine.memory.parts === undefined) return undefined;
    loading ??= import("../context/parts/parts.ts")
      .then(({ contextParts }) => engine.add(contextParts))
      .catch((thrown: unknown) => engine.report("parts", thrown));
    return loading;
  };
}

/** What the process needs once, whatever becomes of this life of the extensions. */
function beginOnce(pi: ExtensionAPI, { startEnvironment }: HelperConfig): void {
  // Without a listener Node opens its inspector to all users of the machine. A pi that is not run by our Node has no flag.
  process.on("SIGUSR1", () => {});
  if (startEnvironment === undefined) return;
  let isStarting = true;
  pi.on("session_start", () => {
    if (isStarting) endStartEnvironment(process.env, startEnvironment);
    isStarting = false;
  });
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
