import { realpath } from "node:fs/promises";
import { inWords, type Place } from "../../protocol/configuration/mistakes.ts";
import { checkedParts, type MergedParts, type PartOptions } from "../../protocol/configuration/part-options.ts";
import { configurationRefusal } from "../../protocol/configuration/refusal.ts";
import { WireError } from "../../protocol/errors.ts";
import { leanOptimisation } from "../../protocol/optimisation/config.ts";
import type { GivenTools } from "../../protocol/optimisation/contradictions.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import type { PruningOptions } from "../../protocol/pruning/options.ts";
import { mergePruning } from "../../protocol/pruning/resolve.ts";
import type { Profile } from "../../protocol/session-options.ts";
import { createValidator } from "../../protocol/validation.ts";
import { filesIn, promptsPlace, unusableFiles } from "../configuration/part-files.ts";
import { type FoundProject, readProjectFile } from "../configuration/project-file.ts";
import { promptsIn } from "../configuration/prompts-directory.ts";
import { liesUnder, type Roots } from "../core/roots.ts";
import type { Journal } from "../log/journal.ts";
import type { PiOptions } from "../pi/spawn-options.ts";
import type { StoredSession } from "../store/stored-session.ts";
import { requireNamedRoute, settingsOf } from "./compaction-settings.ts";

/** The session settings of the daemon's configuration. */
export interface SessionConfiguration {
  /** The configuration file, which may not exist. Default: unknown. */
  readonly file?: string;
  readonly profiles: Readonly<Record<string, Profile>>;
  /** Variables that a client may set for its session's pi; `*` at the end matches any rest. */
  readonly sessionEnv: readonly string[];
  /** Paths of a call must be in these directories; a profile's own paths need not. Default: anywhere. */
  readonly roots?: Roots;
  /** Defaults below profiles and calls. */
  readonly optimisation?: OptimisationOptions;
  readonly pruning?: PruningOptions;
  /** For sessions that do not set it. */
  readonly customUi?: PiOptions["customUi"];
  /** pi's configuration directory, if only this daemon's sessions use it. */
  readonly agentDirectory?: string | undefined;
}

export const noConfiguration: SessionConfiguration = { profiles: {}, sessionEnv: [] };

/** Built-in profiles. A profile of the configuration with the same name overrides one. */
export const shippedProfiles: Readonly<Record<string, Profile>> = {
  lean: { optimisation: leanOptimisation },
};

/** The layers that configure the parts in a session's pi; later ones override. */
export interface PartLayers {
  readonly configured?: PartOptions | undefined;
  readonly project?: FoundProject | undefined;
  readonly profile?: PartOptions | undefined;
  readonly given?: PartOptions | undefined;
}

export interface Layered extends MergedParts {
  /** Why the project's layer was ignored. */
  readonly projectProblem?: string;
}

/**
 * Merges the layers. Throws `invalid_params` for contradicting settings and unavailable tools, and `path_invalid` for
 * an unusable file of a call. An error of a project disables only its own layer.
 */
export async function layered(
  { configured, project, profile, given }: PartLayers,
  tools: GivenTools,
  roots: Roots,
): Promise<Layered> {
  if (given !== undefined) await requireFiles(given, roots);
  const own = checkedParts([configured, profile, given], tools, given);
  if (own.mistakes.length > 0) throw configurationRefusal(own.mistakes);
  requireNamedRoute(given?.optimisation, own.merged.optimisation ?? {});
  if (project === undefined) return own.merged;
  const without = (problem: string): Layered => ({
    ...own.merged,
    projectProblem: problem.slice(0, 1_024).toWellFormed(),
  });
  if (project.problem !== undefined) return without(project.problem);
  const compaction = project.optimisation?.compaction;
  if (compaction?.route === "settings") {
    return without(`${project.file} has the route "settings" of compaction, which applies to all sessions.`);
  }
  const all = checkedParts([configured, project, profile, given], tools);
  requireNamedRoute(given?.optimisation, all.merged.optimisation ?? {});
  // A project must not change what that route writes either.
  if (compaction !== undefined && settingsOf(all.merged.optimisation) !== undefined) {
    return without(`${project.file} has a compaction, and the route "settings" applies to all sessions.`);
  }
  const [mistake] = all.mistakes;
  if (mistake === undefined) return all.merged;
  return without(`${project.file} conflicts with the rest of the configuration: ${inWords(mistake)}`);
}

/** Throws `path_invalid` where a file of a call is not a file, or is outside the allowed directories. */
export async function requireFiles(given: PartOptions, roots: Roots): Promise<void> {
  // First, so that errors do not reveal other files.
  for (const { place, path } of filesIn(given)) {
    const all = place === promptsPlace ? [path, ...promptsIn(path).map((text) => text.path)] : [path];
    for (const one of all) await requireUnder(one, place, roots);
  }
  const [unusable] = unusableFiles(given);
  if (unusable !== undefined) throw pathInvalid(unusable.place, unusable.why, "unusable");
}

async function requireUnder(path: string, place: Place, roots: Roots): Promise<void> {
  const real = await realpath(path).catch(() => undefined);
  // Whether it must exist is checked later.
  if (real === undefined || (await liesUnder(real, roots))) return;
  const why = `${JSON.stringify(path)} is outside the roots of the daemon's configuration`;
  throw pathInvalid(place, why, "outside");
}

function pathInvalid(place: Place, why: string, reason: string): WireError {
  const option = place.join(".");
  return new WireError("path_invalid", `${option}: ${why}.`, { option, reason });
}

/** The configuration of a session whose file already existed: that of the daemon and of its project. */
export async function openedParts(
  cwd: string,
  isTrusted: boolean,
  configured: PartOptions | undefined,
): Promise<Layered> {
  return await layered({ configured, project: await projectOf(cwd, isTrusted) }, {}, undefined);
}

/**
 * The pruning of a session after the layers below its callers' are read again; `given` is the current call's: a value
 * that it replaces need not be usable any more. Throws `invalid_params`, `path_invalid`.
 */
export async function reread(
  { cwd, options, profile: name, ownPruning }: StoredSession,
  { pruning: configured, profiles }: Pick<SessionConfiguration, "profiles" | "pruning">,
  given?: PruningOptions,
): Promise<Layered> {
  const known = { ...shippedProfiles, ...profiles };
  const profile = name !== undefined && Object.hasOwn(known, name) ? known[name] : undefined;
  const project = await projectOf(cwd, options.approve === true);
  return await layered(
    {
      // The other settings are not read again: limits are compared with them.
      configured: { optimisation: options.optimisation, pruning: configured },
      project: project === undefined ? undefined : withoutOptimisation(project),
      profile: { pruning: profile?.pruning },
      given: { pruning: mergePruning(ownPruning, given) },
    },
    {},
    undefined,
  );
}

function withoutOptimisation({ optimisation: _, ...project }: FoundProject): FoundProject {
  return project;
}

/** Tells the session's subscribers that its project's layer was ignored. */
export function tellProjectProblem(
  { journal }: { readonly journal: Pick<Journal, "say"> },
  problem: string | undefined,
): void {
  if (problem !== undefined) journal.say("optimisation/degraded", { part: "project", reason: problem });
}

/** Reads the configuration file of a project, if the project is trusted. */
export function projectOf(cwd: string, isTrusted: boolean): Promise<FoundProject | undefined> {
  return isTrusted ? readProjectFile(cwd, validator) : Promise.resolve(undefined);
}

const validator = createValidator();
