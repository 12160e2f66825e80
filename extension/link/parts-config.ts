import { isAbsolute } from "node:path";
import { isRecord } from "../../protocol/objects.ts";
import { defaultOptimisation } from "../../protocol/optimisation/config.ts";
import { defaultPruning } from "../../protocol/pruning/config.ts";

/**
 * Returns why a configuration of parts is invalid. The daemon has checked the values; this checks that each part and
 * option exists, because another version could lack one.
 */
export function partsError(parts: unknown): string | undefined {
  if (!isRecord(parts)) return "The parts are not an object.";
  const { optimisation, pruning, spillDirectory, labels } = parts;
  if (typeof spillDirectory !== "string" || !isAbsolute(spillDirectory) || spillDirectory.includes("\0"))
    return "The parts need an absolute spillDirectory.";
  if (!isRecord(labels) || !Object.values(labels).every((label) => typeof label === "string"))
    return "The parts have invalid labels.";
  if (!isRecord(optimisation)) return "The parts have no optimisation.";
  for (const [part, options] of Object.entries(defaultOptimisation)) {
    const given = optimisation[part];
    if (!isRecord(given)) return `The optimisation has no ${part}.`;
    const missing = Object.keys(options).find((option) => !Object.hasOwn(given, option));
    if (missing !== undefined) return `The optimisation's ${part} has no ${missing}.`;
  }
  return pruning === undefined ? undefined : pruningError(pruning);
}

/** Checks that all nested keys exist. The daemon has checked the values. */
function pruningError(pruning: unknown): string | undefined {
  if (!isRecord(pruning)) return "The pruning is not an object.";
  const missing = missingKey(defaultPruning, pruning);
  return missing === undefined ? undefined : `The pruning has no ${missing}.`;
}

function missingKey(known: object, given: Readonly<Record<string, unknown>>): string | undefined {
  for (const [key, value] of Object.entries(known)) {
    if (!Object.hasOwn(given, key)) return key;
    if (!isRecord(value)) continue;
    const inner = given[key];
    if (!isRecord(inner)) return key;
    const missing = missingKey(value, inner);
    if (missing !== undefined) return `${key}.${missing}`;
  }
  return undefined;
}
