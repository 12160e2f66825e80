import { access, constants, lstat, realpath, stat } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { WireError } from "../../protocol/errors.ts";
import { wildcardOf } from "../../protocol/glob.ts";
import type { Params } from "../../protocol/methods.ts";
import { defined } from "../../protocol/objects.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import { mergeOptimisation } from "../../protocol/optimisation/resolve.ts";
import type { PruningOptions } from "../../protocol/pruning/options.ts";
import type { Labels, Profile, StartOptions } from "../../protocol/session-options.ts";
import { liesUnder, type Roots, requireRoot } from "../core/roots.ts";
import { withoutLinks } from "../lib/real-path.ts";
import type { StoredOptions } from "../store/stored-session.ts";
import { layered, projectOf, type SessionConfiguration, shippedProfiles } from "./part-layers.ts";

/** The options of a new session: those of its profile, overridden by those of the call. */
export interface CreateOptions {
  readonly options: StoredOptions;
  readonly ephemeral: boolean;
  readonly profile?: string;
  readonly labels?: Labels;
  /** Why the configuration file of the session's project was ignored. */
  readonly projectProblem?: string;
  /** The optimisation of the call and its profile: an impossible budget or an unknown tool refuses the session. */
  readonly ownOptimisation?: OptimisationOptions;
  /** The pruning options of the call. */
  readonly ownPruning?: PruningOptions;
}

/**
 * Variables that no client may set for a session, because they decide which programs run, where pi keeps its files,
 * or belong to the daemon.
 */
const neverSet = [
  /^NODE_/,
  /^LD_/,
  /^DYLD_/,
  /^PI_/,
  /^npm_/i,
  /^(?:BASH|BUN|PYTHON|PERL5?|RUBY|JAVA|_JAVA|JDK_JAVA)_?(?:ENV|FUNC_.*|OPTIONS|TOOL_OPTIONS|OPT|LIB|DB|PATH|STARTUP|HOME)$/,
  /^GIT_(?:SSH|EXEC|CONFIG|ASKPASS|EDITOR|SEQUENCE_EDITOR|PAGER|EXTERNAL_DIFF|PROXY_COMMAND|TEMPLATE_DIR)/,
  /^(?:PATH|HOME|SHELL|ENV|IFS|PS4|INIT_CWD|TMPDIR|GCONV_PATH|NODE|CDPATH|ZDOTDIR|PROMPT_COMMAND|XDG_CONFIG_HOME)$/,
  /^(?:EDITOR|VISUAL|PAGER|SSH_ASKPASS|SUDO_ASKPASS|OPENSSL_CONF)$/,
];

/**
 * Merges a call with its profile and checks the paths. Throws `profile_not_found`, `path_invalid`, `forbidden` (a
 * variable that may not be set) or `invalid_params`. Errors in a project's own file are returned as `projectProblem`.
 */
export async function createOptions(
  params: Params<"session/create">,
  { profiles, sessionEnv, roots, file, ...configured }: SessionConfiguration,
): Promise<CreateOptions> {
  const { cwd, idempotencyKey: __, profile: profileName, ...more } = params;
  const { onForeignWrite: _policy, dialogPolicy: _dialogs, idleAfterMs: _idle, ...further } = more;
  const { context: _context, delegatedBy: _by, whenLeft: _left, ...chosen } = further;
  const { sessionId: _id, file: _file, forkFrom: _source, ...withSecrets } = chosen;
  const { environment: _environment, mcpServers: _servers, ...given } = withSecrets;
  const profile = profileName === undefined ? {} : profileOf(profiles, profileName, file);
  refuseEnv(given.env, (name) => !neverSet.some((pattern) => pattern.test(name)) && isAllowed(name, sessionEnv));
  refuseEnv(profile.env, (name) => !neverSet.some((pattern) => pattern.test(name)));
  const labels = merged(profile.labels, given.labels);
  const env = merged(profile.env, given.env);
  const { provider, ephemeral, labels: ____, env: _____, ...options } = { ...profile, ...given };
  const model = fullModel(provider, options.model);
  await requireRoot(await realpath(cwd).catch(() => cwd), roots);
  const resources = await realPaths(options, (option) => (given[option] === undefined ? undefined : roots));
  const sessionDir = await sessionDirectory(options.sessionDir, given.sessionDir === undefined ? undefined : roots);
  const project = await projectOf(cwd, options.approve === true);
  const { optimisation, pruning, projectProblem } = await layered(
    { configured, project, profile, given },
    options,
    roots,
  );
  return {
    options: defined({
      ...options,
      ...resources,
      model,
      sessionDir,
      env,
      optimisation,
      pruning,
    }),
    ...(projectProblem === undefined ? {} : { projectProblem }),
    ...(options.optimisation === undefined
      ? {}
      : { ownOptimisation: mergeOptimisation(profile.optimisation, given.optimisation) }),
    ...(given.pruning === undefined ? {} : { ownPruning: given.pruning }),
    ephemeral: ephemeral === true,
    ...(profileName === undefined ? {} : { profile: profileName }),
    ...(labels === undefined ? {} : { labels }),
  };
}

/** The options of another start of a session's pi, as they are stored. Throws `path_invalid` and `invalid_params`. */
export async function startOptions({ provider, ...options }: StartOptions, roots: Roots): Promise<StoredOptions> {
  return defined({
    ...options,
    ...(await realPaths(options, () => roots)),
    model: fullModel(provider, options.model),
  });
}

/** The real paths of resources. Throws `path_invalid`. */
async function realPaths(
  options: Pick<StartOptions, ResourceOption>,
  rootsOf: (option: ResourceOption) => Roots,
): Promise<Pick<StoredOptions, ResourceOption>> {
  const paths = (option: ResourceOption) => existing(option, options[option], rootsOf(option));
  const [extensions, skills, promptTemplates] = await Promise.all([
    paths("extensions"),
    paths("skills"),
    paths("promptTemplates"),
  ]);
  return defined({ extensions, skills, promptTemplates });
}

function profileOf(configured: SessionConfiguration["profiles"], name: string, file: string | undefined): Profile {
  const profiles = { ...shippedProfiles, ...configured };
  const profile = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
  if (profile !== undefined) return profile;
  const known = Object.keys(profiles);
  const reread = file === undefined ? "" : ` A profile added to ${file} is known after: pi-rpcd start --restart`;
  const hint = `There are: ${known.slice(0, 16).join(", ")}.${reread}`;
  throw new WireError("profile_not_found", `The daemon's configuration has no profile "${name}". ${hint}`, {
    profile: name,
    profiles: known.slice(0, 64),
  });
}

/**
 * The full name as pi reports it: the meaning of a provider's option for `--model` differs between versions of pi.
 */
function fullModel(provider: string | undefined, model: string | undefined): string | undefined {
  if (provider === undefined) return model;
  if (model === undefined) {
    throw new WireError("invalid_params", "`provider` requires `model`.", {
      findings: [{ path: "/provider", message: "requires `model`" }],
    });
  }
  return model.startsWith(`${provider}/`) ? model : `${provider}/${model}`;
}

function refuseEnv(env: Readonly<Record<string, string>> | undefined, isFree: (name: string) => boolean): void {
  const refused = Object.keys(env ?? {}).filter((name) => !isFree(name));
  if (refused.length === 0) return;
  throw new WireError(
    "forbidden",
    `These variables may not be set for a session: ${refused.join(", ")}. sessionEnv in the daemon's configuration names those that may.`,
    { env: refused },
  );
}

function isAllowed(name: string, allowed: readonly string[]): boolean {
  return allowed.some((pattern) => wildcardOf(pattern)(name));
}

/** Resolves the paths, and leaves packages as they are. pi would misinterpret a missing path, or exit. */
async function existing(
  option: PathOption,
  paths: string | readonly string[] | undefined,
  roots: Roots,
): Promise<string[] | undefined> {
  if (paths === undefined) return undefined;
  return await Promise.all(
    [paths].flat().map(async (path) => {
      if (option === "extensions" && !isAbsolute(path)) return path;
      try {
        const real = await realpath(path);
        if (!(await liesUnder(real, roots))) throw outsideRoots(option, path);
        await access(real, constants.R_OK);
        return real;
      } catch (cause) {
        if (cause instanceof WireError) throw cause;
        const { code } = cause as NodeJS.ErrnoException;
        const why = code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
        throw pathInvalid({ option, path, why, reason: code === "ENOENT" ? "missing" : "unreadable" }, cause);
      }
    }),
  );
}

/** The real path of the directory. It may be missing: then it is created with the session, as pi does. */
async function sessionDirectory(path: string | undefined, roots: Roots): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const option = "sessionDir";
  const isMissing = await lstat(path).then(
    () => false,
    ({ code }: NodeJS.ErrnoException) => code === "ENOENT",
  );
  const real = isMissing ? await withoutLinks(resolve(path)) : (await existing(option, path, roots))?.[0];
  if (real === undefined) return undefined;
  if (!isMissing) await requireWritableDirectory(option, real);
  else if (!(await liesUnder(real, roots))) throw outsideRoots(option, path);
  return real;
}

async function requireWritableDirectory(option: PathOption, path: string): Promise<void> {
  if (!(await stat(path)).isDirectory())
    throw pathInvalid({ option, path, why: "is not a directory", reason: "not_a_directory" });
  await access(path, constants.W_OK | constants.X_OK).catch((cause: unknown) => {
    throw pathInvalid({ option, path, why: "is not writable", reason: "unwritable" }, cause);
  });
}

type ResourceOption = "extensions" | "skills" | "promptTemplates";
type PathOption = ResourceOption | "sessionDir";

interface PathProblem {
  readonly option: string;
  readonly path: string;
  readonly why: string;
  readonly reason: string;
}

function outsideRoots(option: string, path: string): WireError {
  return pathInvalid({ option, path, why: "is outside the roots of the daemon's configuration", reason: "outside" });
}

export function pathInvalid({ option, path, why, reason }: PathProblem, cause?: unknown): WireError {
  const message = `${JSON.stringify(path)}, of ${option}, ${why}.`;
  return new WireError("path_invalid", message, { option, path, reason }, { cause });
}

function merged<T extends object>(first: T | undefined, second: T | undefined): T | undefined {
  return first === undefined && second === undefined ? undefined : ({ ...first, ...second } as T);
}
