import type { PiInfo } from "../../protocol/daemon.ts";
import { CHILD_MARKER_ENV, HELPER_CONFIG_ENV, type StartEnvironment } from "../../protocol/link.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import type { PruningOptions } from "../../protocol/pruning/options.ts";
import { piOptions } from "../../protocol/session-options.ts";

/** A pi that can be started. */
export interface PiProgram extends PiInfo {
  /** `script`: run with the daemon's own Node, regardless of the system's. `executable`: run directly. */
  readonly kind: "script" | "executable";
}

/** Options of a session's pi that a client may set. Every value was checked against the wire's schema. */
export interface PiOptions {
  readonly model?: string;
  readonly models?: readonly string[];
  readonly thinking?: string;
  readonly name?: string;
  readonly tools?: readonly string[];
  readonly excludeTools?: readonly string[];
  readonly noTools?: "all" | "builtin";
  /** Absolute paths, like the following ones, or the sources of packages. */
  readonly extensions?: readonly string[];
  readonly skills?: readonly string[];
  readonly promptTemplates?: readonly string[];
  readonly noExtensions?: boolean;
  readonly noMcp?: boolean;
  /** Of extensions, by their names without dashes. */
  readonly flags?: Readonly<Record<string, string | true>>;
  readonly noSkills?: boolean;
  readonly noPromptTemplates?: boolean;
  readonly noContextFiles?: boolean;
  /** Texts, which reach pi in files: pi would treat a text that is a file's path as that file. */
  readonly systemPrompt?: string;
  readonly appendSystemPrompt?: string;
  readonly sessionDir?: string;
  readonly approve?: boolean;
  /** In addition to inherited variables; only allowed names. */
  readonly env?: Readonly<Record<string, string>>;
  /** For the helper, like the following ones. */
  readonly customUi?: "undefined" | "throw";
  /** For the helper, which gets it before the session begins. */
  readonly optimisation?: OptimisationOptions;
  /** The same. */
  readonly pruning?: PruningOptions;
}

/** Files that contain the texts of {@link PiOptions}. */
export interface PromptFiles {
  readonly systemPrompt?: string;
  readonly appendSystemPrompt?: string;
}

export interface SpawnRequest {
  readonly program: PiProgram;
  /** The module that keeps a script's output for the next daemon, and then runs the script. Default: none. */
  readonly keeper?: string | undefined;
  /** The helper extension's entry file. */
  readonly helper: string;
  readonly helperConfig: string;
  readonly childId: string;
  /** Default: a session in memory only. */
  readonly sessionFile?: string | undefined;
  /** Of a session in memory. Default: pi makes one. */
  readonly sessionId?: string | undefined;
  readonly cwd: string;
  readonly options: PiOptions;
  readonly promptFiles?: PromptFiles;
  readonly env: NodeJS.ProcessEnv;
  /** Replaces variables while pi loads its extensions. Default: none. */
  readonly startEnv?: Readonly<Record<string, string>>;
}

export interface SpawnPlan {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Variables that the helper restores after pi has loaded its extensions. */
  readonly startEnvironment: StartEnvironment;
}

/**
 * The young generation's semi-space size was measured to save about 8 MiB in each idle child without a cost in time.
 * SIGUSR1 would open Node's inspector to all users of the machine.
 */
const noInspector = "--disable-sigusr1";
export const nodeFlags: readonly string[] = ["--max-semi-space-size=1", noInspector];

/** Each option's flags on pi's command line. The oldest and newest supported pi have all of them. */
const flags: Readonly<
  Record<
    Exclude<keyof PiOptions, "env" | "customUi" | "optimisation" | "pruning">,
    (options: PiOptions, files: PromptFiles) => string[]
  >
> = {
  // Before the helper, so that the helper's hooks run after theirs.
  extensions: ({ extensions }) => each("--extension", extensions),
  skills: ({ skills }) => each("--skill", skills),
  promptTemplates: ({ promptTemplates }) => each("--prompt-template", promptTemplates),
  noExtensions: ({ noExtensions }) => on("--no-extensions", noExtensions),
  noMcp: ({ noMcp }) => on("--no-mcp", noMcp),
  noSkills: ({ noSkills }) => on("--no-skills", noSkills),
  noPromptTemplates: ({ noPromptTemplates }) => on("--no-prompt-templates", noPromptTemplates),
  noContextFiles: ({ noContextFiles }) => on("--no-context-files", noContextFiles),
  systemPrompt: (_, { systemPrompt }) => flag("--system-prompt", systemPrompt),
  appendSystemPrompt: (_, { appendSystemPrompt }) => flag("--append-system-prompt", appendSystemPrompt),
  sessionDir: ({ sessionDir }) => flag("--session-dir", sessionDir),
  model: ({ model }) => flag("--model", model),
  models: ({ models }) => flag("--models", models?.join(",")),
  thinking: ({ thinking }) => flag("--thinking", thinking),
  name: ({ name }) => flag("--name", name),
  tools: ({ tools }) => flag("--tools", tools?.join(",")),
  excludeTools: ({ excludeTools }) => flag("--exclude-tools", excludeTools?.join(",")),
  noTools: ({ noTools }) => [
    ...on("--no-tools", noTools === "all"),
    ...on("--no-builtin-tools", noTools === "builtin"),
  ],
  approve: ({ approve }) => [...on("--approve", approve), ...on("--no-approve", approve === false)],
  flags: ({ flags: ofExtensions = {} }) =>
    Object.entries(ofExtensions).map(([name, value]) => extensionFlag(name, value)),
};

/** The command line and environment of a child, from a table: no client's text can become an option. */
export function planSpawn(request: SpawnRequest): SpawnPlan {
  const { program, keeper, options, promptFiles = {} } = request;
  const usual: NodeJS.ProcessEnv = { ...inherited(request.env), ...options.env };
  // An executable does not take Node's flags. The helper, which handles the signal, is loaded half a second later.
  const nodeOptions = [usual["NODE_OPTIONS"] ?? "", noInspector].join(" ").trim();
  const startEnv = { ...request.startEnv, ...(program.kind === "script" ? {} : { NODE_OPTIONS: nodeOptions }) };
  const args = [
    "--mode",
    "rpc",
    ...(request.sessionFile === undefined ? ["--no-session"] : ["--session", request.sessionFile]),
    ...(request.sessionFile === undefined ? flag("--session-id", request.sessionId) : []),
    ...Object.values(flags).flatMap((argumentsOf) => argumentsOf(options, promptFiles)),
    "--extension",
    request.helper,
  ];
  return {
    file: program.kind === "script" ? process.execPath : program.path,
    args:
      program.kind === "script"
        ? [...nodeFlags, ...(keeper === undefined ? [] : [keeper]), program.path, ...args]
        : args,
    cwd: request.cwd,
    env: {
      ...usual,
      ...startEnv,
      [CHILD_MARKER_ENV]: request.childId,
      [HELPER_CONFIG_ENV]: request.helperConfig,
    },
    startEnvironment: Object.fromEntries(
      Object.entries(startEnv).map(([name, value]) => {
        const before = usual[name];
        return [name, before === undefined ? { value } : { value, before }];
      }),
    ),
  };
}

function each(name: string, values: readonly string[] | undefined): string[] {
  return (values ?? []).flatMap((value) => flag(name, value));
}

function on(name: string, isOn: boolean | undefined): string[] {
  return isOn === true ? [name] : [];
}

/** The schema already refuses a leading dash; this is a second check. */
function flag(name: string, value: string | undefined): string[] {
  if (value === undefined || value === "") return [];
  if (value.startsWith("-") || value.includes("\0"))
    throw new TypeError(`${name} cannot take ${JSON.stringify(value)}`);
  return [name, value];
}

/**
 * One word, so that the value is never an option or a file. Without a value, pi would take the next word for it: each
 * word that follows begins with a dash. The schema already refuses these names; this is a second check.
 */
function extensionFlag(name: string, value: string | true): string {
  const word = value === true ? `--${name}` : `--${name}=${value}`;
  const isOfExtension = /^[A-Za-z0-9][A-Za-z0-9._:-]*$/.test(name) && !piOptions.some((own) => own === name);
  if (!isOfExtension || word.includes("\0")) throw new TypeError(`pi cannot take the flag ${JSON.stringify(word)}`);
  return word;
}

/**
 * An environment (keys, proxies, tool chains: it is the user's pi) without variables of the daemon's own process or of
 * the npm that started it.
 */
export function inherited(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(
      ([name]) =>
        name !== "NODE_OPTIONS" && name !== "INIT_CWD" && !/^npm_/i.test(name) && !name.startsWith("PI_RPCD_"),
    ),
  );
}
