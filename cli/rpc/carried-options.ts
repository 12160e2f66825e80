import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Params } from "../../protocol/methods.ts";
import { defined } from "../../protocol/objects.ts";
import type { Validator } from "../../protocol/validator.ts";
import type { PiFlags } from "./pi-flags.ts";

/** The options of `session/create` that a command line of pi asks for. */
export type CreateOptions = Partial<Omit<Params<"session/create">, "cwd">>;

/** What a command line's paths and texts refer to. */
export interface Surroundings {
  /** Absolute. */
  readonly cwd: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly files: {
    readonly exists: (path: string) => boolean;
    /** Returns a file's text. Throws if the file cannot be read. */
    readonly read: (path: string) => string;
  };
}

/** The daemon cannot do what a flag asks for. The message is a sentence for people. */
export class NotCarriedError extends Error {
  override readonly name = "NotCarriedError";
}

const flagOf: Readonly<Partial<Record<string, string>>> = {
  model: "--model",
  provider: "--provider",
  models: "--models",
  flags: "an extension's flag",
  name: "--name",
  tools: "--tools",
  excludeTools: "--exclude-tools",
  extensions: "--extension",
  skills: "--skill",
  promptTemplates: "--prompt-template",
  systemPrompt: "--system-prompt",
  appendSystemPrompt: "--append-system-prompt",
  sessionDir: "--session-dir",
};

/**
 * The options that carry these flags. Throws {@link NotCarriedError}. The directory of `sessionDir` may not exist: pi
 * makes it.
 */
export function carriedOptions(
  flags: PiFlags,
  surroundings: Surroundings,
  validator: Pick<Validator, "params">,
): CreateOptions {
  refuseUncarried(flags);
  const options = defined({
    ...modelOptions(flags),
    ...toolOptions(flags),
    ...resourceOptions(flags, surroundings),
    name: flags.name === undefined ? undefined : storedName(flags.name),
    sessionDir: sessionDirectory(flags, surroundings),
    approve: flags.projectTrustOverride,
    ephemeral: flags.noSession,
  });
  const [finding] = validator.params("session/create", { cwd: surroundings.cwd, ...options });
  if (finding === undefined) return options;
  const option = finding.path.split("/")[1] ?? "";
  throw new NotCarriedError(
    `The daemon does not take this value of ${flagOf[option] ?? option}: it ${finding.message}.`,
  );
}

function refuseUncarried({ apiKey }: PiFlags): void {
  if (given(apiKey) !== undefined) throw new NotCarriedError("--api-key is a secret, which the daemon does not take.");
}

function modelOptions({ model, provider, models, thinking }: PiFlags): CreateOptions {
  // Without a model, pi 0.87.1 ignores the provider.
  return defined({ model: given(model), provider: given(model) && given(provider), models, thinking });
}

function toolOptions({ tools, excludeTools, noTools, noBuiltinTools }: PiFlags): CreateOptions {
  return defined({
    tools: tools && [...tools],
    excludeTools: excludeTools?.length === 0 ? undefined : excludeTools,
    noTools: noTools ? ("all" as const) : noBuiltinTools ? ("builtin" as const) : undefined,
  });
}

function resourceOptions(flags: PiFlags, surroundings: Surroundings): CreateOptions {
  const { systemPrompt, appendSystemPrompt } = flags;
  return defined({
    extensions: resources("--extension", flags.extensions, surroundings),
    skills: resources("--skill", flags.skills, surroundings),
    promptTemplates: resources("--prompt-template", flags.promptTemplates, surroundings),
    noExtensions: flags.noExtensions,
    ...extensionFlags(flags),
    noSkills: flags.noSkills,
    noPromptTemplates: flags.noPromptTemplates,
    noContextFiles: flags.noContextFiles,
    systemPrompt: promptText("--system-prompt", systemPrompt === undefined ? undefined : [systemPrompt], surroundings),
    appendSystemPrompt: promptText("--append-system-prompt", appendSystemPrompt, surroundings),
  });
}

/** The daemon's schema has `--no-mcp` as an option of its own: a pi that does not know it refuses to start. */
function extensionFlags({ noMcp, unknownFlags }: PiFlags): CreateOptions {
  const { "no-mcp": isOff = noMcp, ...others } = Object.fromEntries(unknownFlags);
  if (typeof isOff === "string") throw new NotCarriedError("--no-mcp with a value has no counterpart in the daemon.");
  return defined({ noMcp: isOff, flags: Object.keys(others).length === 0 ? undefined : others });
}

/** pi treats most empty values as if the flag were absent. */
function given(value: string | undefined): string | undefined {
  return value === "" ? undefined : value;
}

/** The name as pi stores it. */
function storedName(name: string): string {
  return name
    .trim()
    .replace(/[\r\n]+/g, " ")
    .trim();
}

function resources(
  flag: string,
  values: readonly string[] | undefined,
  surroundings: Surroundings,
): string[] | undefined {
  return values?.map((value) => {
    if (/^\s*(?:npm|git|github|http|https|ssh|builtin):/.test(value)) {
      if (flag === "--extension") return value;
      throw new NotCarriedError(`The daemon does not load ${value} for ${flag}: it is not a path.`);
    }
    const path = absolutePath(value, surroundings);
    // pi refuses a missing extension in its own words, and ignores the other ones.
    if (!surroundings.files.exists(path)) throw new NotCarriedError(`${path}, which ${flag} names, does not exist.`);
    return path;
  });
}

/** A value that is a file's path is that file's text. */
function promptText(
  flag: string,
  values: readonly string[] | undefined,
  { cwd, files }: Surroundings,
): string | undefined {
  if (values === undefined) return undefined;
  const texts = values
    .filter((value) => value !== "")
    .map((value) => {
      // Not `resolve`: the system finds no a/../b where a is missing.
      const path = isAbsolute(value) ? value : `${cwd}/${value}`;
      if (!files.exists(path)) return value;
      try {
        return files.read(path).replace(/^\uFEFF/, "");
      } catch (error) {
        throw new NotCarriedError(`${path}, which ${flag} names, cannot be read.`, { cause: error });
      }
    });
  return texts.join("\n\n");
}

/** The directory of sessions that a command line or its environment names. Throws {@link NotCarriedError}. */
export function sessionDirectory({ sessionDir }: PiFlags, surroundings: Surroundings): string | undefined {
  const chosen = given(sessionDir) ?? given(surroundings.environment["PI_CODING_AGENT_SESSION_DIR"]);
  return chosen === undefined ? undefined : absolutePath(chosen, surroundings);
}

/** The file that a path of pi's command line names. Throws {@link NotCarriedError}. */
export function absolutePath(path: string, { cwd, environment }: Surroundings): string {
  const home = environment["HOME"] ?? homedir();
  if (path === "~") return home;
  if (path.startsWith("~/")) return join(home, path.slice(2));
  if (!path.startsWith("file://")) return resolve(cwd, path);
  try {
    return fileURLToPath(path);
  } catch (error) {
    throw new NotCarriedError(`${path} is not the URL of a file.`, { cause: error });
  }
}
