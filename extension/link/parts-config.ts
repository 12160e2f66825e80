import { isAbsolute } from "node:path";
import { defaultOptimisation } from "../../protocol/optimisation/config.ts";
import { defaultPruning } from "../../protocol/pruning/config.ts";
import { isObject } from "../pi-types.ts";

/**
 * Why this is no configuration of parts. The daemon has checked its values; here is looked at what would make a part throw:
 * a part that is missing, or is of another version.
 */
export function whatIsWrongWithParts(parts: unknown): string | undefined {
  if (!isObject(parts)) return "The parts are no object.";
  const { optimisation, pruning, spillDirectory, labels } = parts;
  if (typeof spillDirectory !== "string" || !isAbsolute(spillDirectory) || spillDirectory.includes("\0"))
    return "The parts have no absolute spillDirectory.";
  if (!isObject(labels) || !Object.values(labels).every((label) => typeof label === "string"))
    return "The parts have wrong labels.";
  if (!isObject(optimisation)) return "The parts have no optimisation.";
  for (const [part, knobs] of Object.entries(defaultOptimisation)) {
    const given = optimisation[part];
    if (!isObject(given)) return `The optimisation has no ${part}.`;
    const missing = Object.keys(knobs).find((knob) => !Object.hasOwn(given, knob));
    if (missing !== undefined) return `The optimisation's ${part} has no ${missing}.`;
  }
  return pruning === undefined ? undefined : whatIsWrongWithPruning(pruning);
}

/** Its values too were checked by the daemon; a part reads keys of keys. */
function whatIsWrongWithPruning(pruning: unknown): string | undefined {
  if (!isObject(pruning)) return "The pruning is no object.";
  const missing = missingKey(defaultPruning, pruning);
  return missing === undefined ? undefined : `The pruning has no ${missing}.`;
}

function missingKey(known: object, given: Readonly<Record<string, unknown>>): string | undefined {
  for (const [key, value] of Object.entries(known)) {
    if (!Object.hasOwn(given, key)) return key;
    if (!isObject(value)) continue;
    const inner = given[key];
    if (!isObject(inner)) return key;
    const missing = missingKey(value, inner);
    if (missing !== undefined) return `${key}.${missing}`;
  }
  return undefined;
}
