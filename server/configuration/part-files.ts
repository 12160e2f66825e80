import { statSync } from "node:fs";
import { configurationKeys, sorted } from "../../protocol/configuration/configurations.ts";
import { type Mistake, type Place, placeName, pointerTo } from "../../protocol/configuration/mistakes.ts";
import { checkedParts, type PartOptions } from "../../protocol/configuration/part-options.ts";
import type { Profile } from "../../protocol/session-options.ts";
import type { Validator } from "../../protocol/validation.ts";
import { unusablePrompts } from "./prompts-directory.ts";
import { settings } from "./settings.ts";

/** A larger file is no prompt and no list of words. */
const maxKnobFileBytes = 1024 * 1024;
/** Of these, that of a directory of texts. */
export const promptsPlace = ["pruning", "prompts", "dir"];
/** Where paths stand. */
export const pathPlaces: readonly (readonly string[])[] = [
  ["optimisation", "compaction", "prompt"],
  ["optimisation", "dynamicTools", "synonyms"],
  promptsPlace,
];

/** Of what a configuration file says, what is a configuration of sessions. */
interface SessionParts extends PartOptions {
  readonly profiles?: Readonly<Record<string, Profile>>;
}

/** Where in a configuration file configurations of sessions may lie. */
export function configurationsIn(value: unknown): readonly Place[] {
  const { profiles } = isFields(value) ? value : {};
  const names = isFields(profiles) ? Object.keys(profiles) : [];
  return [
    ...configurationKeys.map((key) => [key]),
    ...names.flatMap((name) => configurationKeys.map((key) => ["profiles", name, key])),
  ];
}

/** What each layer of a file that is as its schema says has against itself, and which files it names that are none. */
export function mistakesOfLayers({ optimisation, pruning, profiles = {} }: SessionParts): Mistake[] {
  const below: PartOptions = { optimisation, pruning };
  const own = saysNothing(below) ? [] : mistakesOf([], below, {}, []);
  if (own.length > 0) return own;
  return Object.entries(profiles).flatMap(([name, profile]) =>
    saysNothing(profile) ? [] : mistakesOf([below], profile, profile, ["profiles", name]),
  );
}

function saysNothing({ optimisation, pruning }: PartOptions): boolean {
  return optimisation === undefined && pruning === undefined;
}

function mistakesOf(below: readonly PartOptions[], layer: PartOptions, tools: Profile, at: Place): Mistake[] {
  const { mistakes } = checkedParts([...below, layer], tools, layer);
  return [...mistakes, ...unusableFiles(layer)].map(({ place, why }) => ({ place: [...at, ...place], why }));
}

/** Files and directories that a layer names. */
export function filesIn(layer: PartOptions): readonly { place: Place; path: string }[] {
  return pathPlaces.flatMap((place) => {
    const path = place.reduce<unknown>((found, key) => (isFields(found) ? found[key] : undefined), layer);
    return typeof path === "string" ? [{ place, path }] : [];
  });
}

/** Files that a layer names and that cannot be read as such. */
export function unusableFiles(layer: PartOptions): Mistake[] {
  return filesIn(layer).flatMap(({ place, path }) => {
    if (place === promptsPlace) return unusablePrompts(path).map((why) => ({ place, why }));
    const why = whyUnusable(path);
    return why === undefined ? [] : [{ place, why: `${JSON.stringify(path)} ${why}` }];
  });
}

function whyUnusable(path: string): string | undefined {
  try {
    const found = statSync(path);
    if (!found.isFile()) return "is not a file";
    return found.size > maxKnobFileBytes ? `is longer than ${maxKnobFileBytes} bytes` : undefined;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    return code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
  }
}

/** A mistake of a file: where, as a JSON pointer, and what. */
export interface FileMistake {
  readonly place: string;
  readonly words: string;
}

/** What is wrong with what a file says: of its schema, and if it has nothing against that, of its layers. */
export function mistakesOfFile(
  value: unknown,
  schema: object,
  validator: Validator,
  configurations: (value: unknown) => readonly Place[],
  further: (value: SessionParts) => readonly Mistake[],
): readonly FileMistake[] {
  const found = validator.schema(schema, value);
  if (found.length === 0) return further(value as SessionParts).map(told);
  const { findings, mistakes } = sorted(found, value, configurations(value));
  return [
    ...findings.map(({ path, message }) => ({
      place: path,
      words: `${path === "" ? "the whole" : named(path)} ${message}`,
    })),
    ...mistakes.map(({ at, mistake: { place, why } }) => told({ place: [...at, ...place.slice(1)], why })),
  ];
}

function told({ place, why }: Mistake): FileMistake {
  return { place: pointerTo(place), words: `${placeName(place)}: ${why}` };
}

/** A part of an object is called as its setting is: `context.maxNodes`. */
function named(pointer: string): string {
  const [, group = "", part = ""] = pointer.split("/");
  const name = `${group}.${part}`;
  return Object.hasOwn(settings, name) ? `${name}${pointer.slice(name.length + 1)}` : pointer;
}

function isFields(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
