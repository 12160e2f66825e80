import { isAbsolute } from "node:path";
import { defaultOptimisation } from "../../protocol/optimisation/config.ts";
import { isObject } from "../pi-types.ts";

/**
 * Why this is no configuration of parts. The daemon has checked its values; here is looked at what would make a part throw:
 * a part that is missing, or is of another version.
 */
export function whatIsWrongWithParts(parts: unknown): string | undefined {
  if (!isObject(parts)) return "The parts are no object.";
  const { optimisation, spillDirectory, labels } = parts;
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
  return undefined;
}
