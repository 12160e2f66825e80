import { HELPER_CONFIG_ENV, type HelperConfig, type PartsConfig, type StartEnvironment } from "../../protocol/link.ts";
import { isObject } from "../pi-types.ts";
import { takeOwnedFile } from "./owned-file.ts";
import { whatIsWrongWithParts } from "./parts-config.ts";

const maxConfigBytes = 256 * 1024;
/** An hour. */
const maxWaitMs = 3_600_000;

/**
 * Takes the configuration that the daemon has left for this process, once: the file is deleted, and the variable is
 * removed so that no tool of the agent sees it. `undefined` without the variable: this pi has no daemon.
 * Throws when there is a file that cannot be used.
 */
export function takeHelperConfig(env: NodeJS.ProcessEnv): HelperConfig | undefined {
  const path = env[HELPER_CONFIG_ENV];
  delete env[HELPER_CONFIG_ENV];
  if (path === undefined || path === "") return undefined;
  return helperConfig(JSON.parse(takeOwnedFile(path, maxConfigBytes).toString("utf8")));
}

/**
 * Restores what the environment of tools must be, once pi has loaded its extensions. A value that is another one by now,
 * such as in a container that gets few variables, stays. From then on jiti caches nothing: after a reload it would read
 * compiled code from the user's directory for temporary files, where others may have put it.
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
  if (!isObject(value)) throw new Error("The helper's configuration is no object.");
  const { link, statusKey, contextWithinMs, isOnlyAsked, customUi, parts, startEnvironment } = value;
  if (typeof link !== "number") throw new Error("The helper's configuration does not say which link it is for.");
  if (typeof statusKey !== "string" || statusKey === "")
    throw new Error("The helper's configuration has no status key.");
  if (startEnvironment !== undefined && !isStartEnvironment(startEnvironment))
    throw new Error("The helper's configuration has a wrong startEnvironment.");
  const wrong = parts === undefined ? undefined : whatIsWrongWithParts(parts);
  if (wrong !== undefined) throw new Error(`The helper's configuration: ${wrong}`);
  const config = {
    link,
    statusKey,
    ...(isOnlyAsked === true ? { isOnlyAsked } : {}),
    ...(customUi === "throw" ? ({ customUi } as const) : {}),
    ...(parts === undefined ? {} : { parts: parts as PartsConfig }),
    ...(startEnvironment === undefined ? {} : { startEnvironment }),
  };
  if (contextWithinMs === undefined) return config;
  if (typeof contextWithinMs !== "number" || !(contextWithinMs > 0))
    throw new Error("The helper's configuration has a wrong contextWithinMs.");
  return { ...config, contextWithinMs: Math.min(contextWithinMs, maxWaitMs) };
}

function isStartEnvironment(value: unknown): value is StartEnvironment {
  const isEntry = (entry: unknown): boolean =>
    isObject(entry) && typeof entry["value"] === "string" && ["string", "undefined"].includes(typeof entry["before"]);
  return isObject(value) && Object.values(value).every(isEntry);
}
