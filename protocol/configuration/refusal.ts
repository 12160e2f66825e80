import { type ParamsFinding, WireError } from "../errors.ts";
import { inWords, type Mistake, pointerTo } from "./mistakes.ts";

/** `invalid_params` of a configuration: each place with its keys, as a sentence, and as a finding. */
export function configurationRefusal(mistakes: readonly Mistake[]): WireError {
  return new WireError("invalid_params", mistakes.map(inWords).join(" "), { findings: mistakes.map(asFinding) });
}

export function asFinding(mistake: Mistake): ParamsFinding {
  return { path: pointerTo(mistake.place), message: mistake.why };
}
