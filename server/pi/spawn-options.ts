import { CHILD_MARKER_ENV, HELPER_CONFIG_ENV } from "../../protocol/link.ts";
import type { PiProgram } from "./locate.ts";

/** What a client may choose about its session's pi. Every value was checked against the wire's schema. */
export interface PiOptions {
  readonly model?: string;
  readonly thinking?: string;
  readonly name?: string;
  readonly tools?: readonly string[];
  readonly excludeTools?: readonly string[];
  readonly approve?: boolean;
}

export interface SpawnRequest {
  readonly program: PiProgram;
  /** The helper extension's entry file. */
  readonly helper: string;
  readonly helperConfig: string;
  readonly childId: string;
  /** Default: a session in memory alone. */
  readonly sessionFile?: string | undefined;
  readonly cwd: string;
  readonly options: PiOptions;
  readonly env: NodeJS.ProcessEnv;
}

export interface SpawnPlan {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

/** Halves of the new-space measured to save some 8 MiB in each idle child at no cost in time. */
const nodeFlags = ["--max-semi-space-size=1"];

/** The command line and environment of a child, from a table: no client string can become an option. */
export function planSpawn(request: SpawnRequest): SpawnPlan {
  const { program, options } = request;
  const args = [
    "--mode",
    "rpc",
    "--extension",
    request.helper,
    ...(request.sessionFile === undefined ? ["--no-session"] : ["--session", request.sessionFile]),
    ...flag("--model", options.model),
    ...flag("--thinking", options.thinking),
    ...flag("--name", options.name),
    ...flag("--tools", options.tools?.join(",")),
    ...flag("--exclude-tools", options.excludeTools?.join(",")),
    ...(options.approve === true ? ["--approve"] : []),
  ];
  return {
    file: program.kind === "script" ? process.execPath : program.path,
    args: program.kind === "script" ? [...nodeFlags, program.path, ...args] : args,
    cwd: request.cwd,
    env: {
      ...inherited(request.env),
      [CHILD_MARKER_ENV]: request.childId,
      [HELPER_CONFIG_ENV]: request.helperConfig,
    },
  };
}

/** The schema lets no value begin with a dash; this holds should a schema ever fail to. */
function flag(name: string, value: string | undefined): string[] {
  if (value === undefined || value === "") return [];
  if (value.startsWith("-") || value.includes("\0"))
    throw new TypeError(`${name} cannot take ${JSON.stringify(value)}`);
  return [name, value];
}

/**
 * The daemon's environment (it is the user's pi: keys, proxies, tool chains) without what belongs to the daemon's own
 * process or to the npm that may have started it.
 */
function inherited(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name]) =>
        name !== "NODE_OPTIONS" && name !== "INIT_CWD" && !/^npm_/i.test(name) && !name.startsWith("PI_RPCD_"),
    ),
  );
}
