import { HELPER_CONFIG_ENV, type HelperConfig, type PartsConfig, type StartEnvironment } from "../../protocol/link.ts";
import type { McpServer } from "../../protocol/mcp-servers.ts";
import { isRecord } from "../../protocol/objects.ts";
import { takeOwnedFile } from "./owned-file.ts";
import { partsError } from "./parts-config.ts";

const maxConfigBytes = 512 * 1024;
/** One hour. */
const maxWaitMs = 3_600_000;

/**
 * Reads the daemon's configuration for this process, once: the file is deleted, and the variable is removed so that no
 * tool sees it. Returns `undefined` without the variable: this pi has no daemon. Throws for an invalid file.
 */
export function takeHelperConfig(env: NodeJS.ProcessEnv): HelperConfig | undefined {
  const path = env[HELPER_CONFIG_ENV];
  delete env[HELPER_CONFIG_ENV];
  if (path === undefined || path === "") return undefined;
  return helperConfig(JSON.parse(takeOwnedFile(path, maxConfigBytes).toString("utf8")));
}

/**
 * Restores the environment for tools after pi has loaded its extensions. Values that have changed since, as in a
 * container that gets few variables, stay. Also disables jiti's cache: after a reload jiti would read compiled code
 * from the temporary directory, where other processes may have put it.
 */
export function endStartEnvironment(env: NodeJS.ProcessEnv, startEnvironment: StartEnvironment): void {
  for (const [name, { value, before }] of Object.entries(startEnvironment)) {
    if (env[name] !== value) continue;
    if (before === undefined) delete env[name];
    else env[name] = before;
  }
  env["JITI_FS_CACHE"] = "false";
}

function helperConfig(value: unknown): HelperConfig {
  if (!isRecord(value)) throw new Error("The helper's configuration is not an object.");
  const { link, statusKey, contextWithinMs, isOnlyAsked, customUi, parts, startEnvironment, mcpServers } = value;
  if (typeof link !== "number") throw new Error("The helper's configuration has no link version.");
  if (typeof statusKey !== "string" || statusKey === "")
    throw new Error("The helper's configuration has no status key.");
  if (startEnvironment !== undefined && !isStartEnvironment(startEnvironment))
    throw new Error("The helper's configuration has an invalid startEnvironment.");
  if (mcpServers !== undefined && !isServers(mcpServers))
    throw new Error("The helper's configuration has invalid mcpServers.");
  const wrong = parts === undefined ? undefined : partsError(parts);
  if (wrong !== undefined) throw new Error(`The helper's configuration: ${wrong}`);
  const config = {
    link,
    statusKey,
    ...(isOnlyAsked === true ? { isOnlyAsked } : {}),
    ...(customUi === "throw" ? ({ customUi } as const) : {}),
    ...(parts === undefined ? {} : { parts: parts as PartsConfig }),
    ...(startEnvironment === undefined ? {} : { startEnvironment }),
    ...(mcpServers === undefined ? {} : { mcpServers }),
  };
  if (contextWithinMs === undefined) return config;
  if (typeof contextWithinMs !== "number" || !(contextWithinMs > 0))
    throw new Error("The helper's configuration has an invalid contextWithinMs.");
  return { ...config, contextWithinMs: Math.min(contextWithinMs, maxWaitMs) };
}

function isStartEnvironment(value: unknown): value is StartEnvironment {
  const isEntry = (entry: unknown): boolean =>
    isRecord(entry) && typeof entry["value"] === "string" && ["string", "undefined"].includes(typeof entry["before"]);
  return isRecord(value) && Object.values(value).every(isEntry);
}

/** pi checks the other fields. */
function isServers(value: unknown): value is readonly McpServer[] {
  return Array.isArray(value) && value.every((server) => isRecord(server) && typeof server["name"] === "string");
}
