import { realpath } from "node:fs/promises";
import { inWords } from "../../protocol/configuration/mistakes.ts";
import { configurationRefusal } from "../../protocol/configuration/refusal.ts";
import { WireError } from "../../protocol/errors.ts";
import { checkedOptimisation } from "../../protocol/optimisation/check.ts";
import { leanOptimisation } from "../../protocol/optimisation/config.ts";
import type { GivenTools } from "../../protocol/optimisation/contradictions.ts";
import type { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import type { Profile } from "../../protocol/session-options.ts";
import { createValidator } from "../../protocol/validation.ts";
import { filesIn, unusableFiles } from "../configuration/optimisation.ts";
import { type FoundProject, readProjectFile } from "../configuration/project-file.ts";
import { requireNamedRoute, settingsOf } from "./compaction-settings.ts";
import { liesUnder, type Roots } from "./roots.ts";
import type { Session } from "./session.ts";

/** Profiles that there are without any configuration. One of the same name in the configuration goes before. */
export const shippedProfiles: Readonly<Record<string, Profile>> = { lean: { optimisation: leanOptimisation } };

/** What says how a session is to be optimised; later ones go before. */
export interface OptimisationLayers {
  readonly configured?: OptimisationOptions | undefined;
  readonly project?: FoundProject | undefined;
  readonly profile?: OptimisationOptions | undefined;
  readonly given?: OptimisationOptions | undefined;
}

export interface Layered {
  /** Absent: no layer says anything. */
  readonly optimisation?: OptimisationOptions;
  /** Why the project's layer is left out. */
  readonly projectProblem?: string;
}

/**
 * Brings the layers together. Throws `invalid_params` for knobs that contradict and tools that the session cannot have, and
 * `path_invalid` for a file that a call names and that cannot be used. What a project has wrong costs its layer alone.
 */
export async function layered(
  { configured, project, profile, given }: OptimisationLayers,
  tools: GivenTools,
  roots: Roots,
): Promise<Layered> {
  if (given !== undefined) await requireFiles(given, roots);
  const own = checkedOptimisation([configured, profile, given], tools, given);
  if (own.mistakes.length > 0) throw configurationRefusal(own.mistakes);
  requireNamedRoute(given, own.merged);
  if (project === undefined) return asLayered(own.merged);
  if (project.optimisation === undefined) return asLayered(own.merged, project.problem);
  if (project.optimisation.compaction?.route === "settings") {
    return asLayered(
      own.merged,
      `${project.file} has the route "settings" of compaction, which holds for all sessions.`,
    );
  }
  const all = checkedOptimisation([configured, project.optimisation, profile, given], tools);
  requireNamedRoute(given, all.merged);
  // Neither does it say what that route writes.
  if (project.optimisation.compaction !== undefined && settingsOf(all.merged) !== undefined) {
    return asLayered(own.merged, `${project.file} has a compaction, and the route "settings" holds for all sessions.`);
  }
  const [mistake] = all.mistakes;
  if (mistake === undefined) return asLayered(all.merged);
  return asLayered(own.merged, `${project.file} does not go with what else is configured: ${inWords(mistake)}`);
}

function asLayered(merged: OptimisationOptions, projectProblem?: string): Layered {
  return {
    ...(Object.keys(merged).length === 0 ? {} : { optimisation: merged }),
    ...(projectProblem === undefined ? {} : { projectProblem: projectProblem.slice(0, 1_024).toWellFormed() }),
  };
}

/** Throws `path_invalid` where a file that a call names is none, or lies elsewhere than it must. */
export async function requireFiles(given: OptimisationOptions, roots: Roots): Promise<void> {
  const [unusable] = unusableFiles(given);
  if (unusable !== undefined) throw pathInvalid(unusable.place, unusable.why, "unusable");
  for (const { place, path } of filesIn(given)) {
    const real = await realpath(path);
    if (await liesUnder(real, roots)) continue;
    const why = `${JSON.stringify(path)} lies under none of the roots of the daemon's configuration`;
    throw pathInvalid(place, why, "outside");
  }
}

function pathInvalid(place: readonly (string | number)[], why: string, reason: string): WireError {
  const option = place.join(".");
  return new WireError("path_invalid", `${option}: ${why}.`, { option, reason });
}

/** What a session has whose file was there before it: what the daemon and its project say. */
export async function openedOptimisation(
  cwd: string,
  isTrusted: boolean,
  configured: OptimisationOptions | undefined,
): Promise<Layered> {
  return await layered({ configured, project: await projectOf(cwd, isTrusted) }, {}, undefined);
}

/** Tells the session's subscribers that its project's layer is left out. */
export function tellProjectProblem({ journal }: Pick<Session, "journal">, problem: string | undefined): void {
  if (problem !== undefined) journal.say("optimisation/degraded", { part: "project", reason: problem });
}

/** What the configuration file of a project says. Of one that is not trusted nothing is read. */
export function projectOf(cwd: string, isTrusted: boolean): Promise<FoundProject | undefined> {
  return isTrusted ? readProjectFile(cwd, validator) : Promise.resolve(undefined);
}

const validator = createValidator();
