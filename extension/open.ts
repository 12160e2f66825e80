import { randomBytes } from "node:crypto";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { HelperConfig } from "../protocol/link.ts";
import { findOrStartEngine } from "./engine.ts";
import type { Engine, Part } from "./engine-port.ts";
import { linkToDaemon } from "./helper.ts";
import { inspectionPart } from "./inspection.ts";
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
 * Opens the link to the daemon whose configuration is in the environment; does nothing without one. pi calls the entry
 * again at each reload or replacement of the session; the link stays the same.
 */
export function openHelper(pi: ExtensionAPI, { entry, parts = [] }: OpenOptions): Promise<void> | undefined {
  const config = takeConfig();
  if (config === undefined && !isLinkKept(entry)) return undefined;
  if (config !== undefined) initialiseProcess(pi, config);
  const engine = findOrStartEngine(pi);
  if (engine.memory.link === undefined && config !== undefined) {
    const { statusKey, contextWithinMs, isOnlyAsked } = config;
    engine.memory.link = { owner: entry, statusKey, command: `pi-rpcd-${randomBytes(16).toString("hex")}` };
    if (contextWithinMs !== undefined) engine.memory.contextDueBy = performance.now() + contextWithinMs;
    engine.memory.isOnlyAsked = isOnlyAsked === true;
    engine.memory.customUi = config.customUi;
    engine.memory.parts = config.parts;
  }
  const { link } = engine.memory;
  if (link?.owner !== entry) return undefined;
  for (const part of parts) engine.add(part);
  engine.add(inspectionPart);
  engine.add(tree);
  const contextParts = contextPartsOf(engine);
  linkToDaemon(pi, engine, link, contextParts);
  return contextParts();
}

/**
 * Loads optimisation and pruning once they are configured, so that a pi without them does not pay for their modules. If
 * they cannot be loaded, pi continues without them.
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

/** Process-wide setup, done once. */
function initialiseProcess(pi: ExtensionAPI, { startEnvironment }: HelperConfig): void {
  // Without a listener Node opens its inspector to all users of the machine. A pi that runs on another Node cannot be
  // given a flag.
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
    // The daemon reads pi's stderr while it waits for a hello.
    process.stderr.write(`pi-rpcd: the helper extension cannot link to its daemon. ${messageOf(thrown)}\n`);
    return undefined;
  }
}
