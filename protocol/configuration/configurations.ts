import type { ParamsFinding } from "../errors.ts";
import { OptimisationOptions, optimisationWords } from "../optimisation/options.ts";
import { pruningMistakes } from "../pruning/words.ts";
import { type Mistake, type Place, schemaMistakes } from "./mistakes.ts";

/** Configurations with the same schema in params, profiles and files, by key, with their validators. */
const configurations: Readonly<Record<string, (value: unknown, place: Place) => Mistake[]>> = {
  optimisation: (value, place) => schemaMistakes(OptimisationOptions, value, place, optimisationWords),
  pruning: pruningMistakes,
};

/** Errors of a value: schema findings, and mistakes in the configurations that it contains. */
export interface Sorted {
  readonly findings: readonly ParamsFinding[];
  /** Their places begin with the configuration's key; `at` is its position in the value. */
  readonly mistakes: readonly { readonly at: Place; readonly mistake: Mistake }[];
}

/** `at`: positions of configurations in the value, each ending with its key. */
export function sorted(findings: readonly ParamsFinding[], value: unknown, at: readonly Place[]): Sorted {
  let left = findings;
  const mistakes: Sorted["mistakes"][number][] = [];
  for (const place of at) {
    const name = String(place.at(-1));
    const mistakesOf = configurations[name];
    const given = valueAt(value, place);
    const pointer = `/${place.map((key) => String(key).replaceAll("~", "~0").replaceAll("/", "~1")).join("/")}`;
    const isInside = ({ path }: ParamsFinding): boolean => path === pointer || path.startsWith(`${pointer}/`);
    if (mistakesOf === undefined || given === undefined || !left.some(isInside)) continue;
    const found = mistakesOf(given, [name]);
    if (found.length === 0) continue;
    mistakes.push(...found.map((mistake) => ({ at: place, mistake })));
    left = left.filter((finding) => !isInside(finding));
  }
  return { findings: left, mistakes };
}

/** Keys of the configurations. */
export const configurationKeys: readonly string[] = Object.keys(configurations);

function valueAt(value: unknown, place: Place): unknown {
  let found = value;
  for (const key of place) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[key];
  }
  return found;
}
