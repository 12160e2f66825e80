import { randomBytes } from "node:crypto";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { HelperConfig } from "../protocol/link.ts";
import { atWork, keeper } from "./at-work.ts";
import { findOrStartEngine } from "./engine.ts";
import type { Engine, HostPort, Part } from "./engine-port.ts";
import { linkToDaemon, refuseLink } from "./helper.ts";
import { endStartEnvironment, takeHelperConfig } from "./link/config.ts";
import { registerMcpServers } from "./mcp-servers.ts";
import { isLinkKept, keepLink, leftLink } from "./memory.ts";
import { messageOf } from "./pi-types.ts";
import { tree } from "./tree.ts";

const loadStructuredContext = () => import("../context/parts/structured/structured-context.ts");
const loadInspection = () => import("../context/parts/optimisation/inspection.ts");
const loadOptimisation = () => import("../context/parts/optimisation/optimisation.ts");
const loadTrim = () => import("../context/document/trim.ts");

/** When a pi that can outlive its daemon loads these modules: after its start, which they would delay. */
const loadAllAfterMs = 1_000;

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
  if (config === undefined && !isLinkKept(entry)) {
    const left = leftLink(entry);
    if (left !== undefined) refuseLink(pi, left);
    return undefined;
  }
  if (config !== undefined) initialiseProcess(pi, config);
  const engine = findOrOpenEngine(pi);
  if (engine.memory.link === undefined && config !== undefined) {
    const { statusKey, contextWithinMs, isOnlyAsked } = config;
    engine.memory.link = { owner: entry, statusKey, command: `pi-rpcd-${randomBytes(16).toString("hex")}` };
    if (contextWithinMs !== undefined) engine.memory.contextDueBy = performance.now() + contextWithinMs;
    engine.memory.isOnlyAsked = isOnlyAsked === true;
    engine.memory.customUi = config.customUi;
    engine.memory.parts = config.parts;
    if (config.mcpServers !== undefined) engine.memory.mcpServers = config.mcpServers;
  }
  if (config !== undefined && keeper() !== undefined) setTimeout(() => void loadAll(engine), loadAllAfterMs).unref();
  const { link } = engine.memory;
  if (link?.owner !== entry) return undefined;
  keepLink(link, pi);
  for (const part of parts) engine.add(part);
  engine.add(inspectionPart);
  engine.add(tree);
  engine.add(atWork);
  const contextParts = contextPartsOf(engine);
  linkToDaemon(pi, engine, link, contextParts);
  registerMcpServers(pi, engine.memory.mcpServers ?? []);
  const loading = [contextParts(), engine.loadContext()].filter((one) => one !== undefined);
  return loading.length === 0 ? undefined : Promise.all(loading).then(() => undefined);
}

/** Returns the engine of this pi, or starts it. */
export function findOrOpenEngine(pi: ExtensionAPI): Engine {
  return findOrStartEngine(pi, async () => {
    const { structuredContext } = await loadStructuredContext();
    return structuredContext;
  });
}

/**
 * Answers `optimisation/inspect` and lists the tools, in every pi. While no part is active, its module is loaded on the
 * first request.
 */
function inspectionPart(host: HostPort): void {
  host.answer("optimisation/inspect", async (_params, ctx) => {
    const { bareInspection } = await loadInspection();
    return bareInspection(host, ctx);
  });
  host.answer("tools", () => ({ tools: host.pi.getAllTools().map(({ name }) => name) }));
}

/**
 * Loads optimisation and pruning once they are configured, so that a pi without them does not pay for their modules. If
 * they cannot be loaded, pi continues without them.
 */
function contextPartsOf(engine: Engine): () => Promise<void> | undefined {
  let loading: Promise<void> | undefined;
  return () => {
    if (engine.memory.parts === undefined) return undefined;
    loading ??= loadOptimisation()
      .then(({ optimisation }) => engine.add(optimisation))
      .catch((thrown: unknown) => engine.report("parts", thrown));
    return loading;
  };
}

/**
 * Loads the modules that are otherwise loaded on demand. A pi that outlives its daemon also outlives an upgrade of the
 * package, which replaces their files.
 */
async function loadAll(engine: Engine): Promise<void> {
  try {
    for (const load of [loadStructuredContext, loadTrim, loadInspection, loadOptimisation]) await load();
  } catch (thrown) {
    engine.report("load", thrown);
  }
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
