import { statSync } from "node:fs";
import { configurationKeys, sorted } from "../../protocol/configuration/configurations.ts";
import { type Mistake, type Place, placeName, pointerTo } from "../../protocol/configuration/mistakes.ts";
import { nearest } from "../../protocol/configuration/nearest.ts";
import { checkedParts, type PartOptions } from "../../protocol/configuration/part-options.ts";
import type { JsonSchema } from "../../protocol/json-schema.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { Profile } from "../../protocol/session-options.ts";
import type { Validator } from "../../protocol/validation.ts";
import { unusablePrompts } from "./prompts-directory.ts";
import { settings } from "./settings.ts";

/** A larger file is neither a prompt nor a word list. */
const maxOptionFileBytes = 1024 * 1024;
/** The one of these that is a directory of texts. */
export const promptsPlace = ["pruning", "prompts", "dir"];
/** Positions of paths. */
export const pathPlaces: readonly (readonly string[])[] = [
  ["optimisation", "compaction", "prompt"],
  ["optimisation", "dynamicTools", "synonyms"],
  promptsPlace,
];

/** The parts of a configuration file that configure sessions. */
interface SessionParts extends PartOptions {
  readonly profiles?: Readonly<Record<string, Profile>>;
}

/** The positions in a configuration file that can have a configuration of sessions. */
export function configurationsIn(value: unknown): readonly Place[] {
  const { profiles } = isRecord(value) ? value : {};
  const names = isRecord(profiles) ? Object.keys(profiles) : [];
  return [
    ...configurationKeys.map((key) => [key]),
    ...names.flatMap((name) => configurationKeys.map((key) => ["profiles", name, key])),
  ];
}

/** The mistakes of each layer of a file that matches its schema, including named files that cannot be used. */
export function mistakesOfLayers({ optimisation, pruning, profiles = {} }: SessionParts): Mistake[] {
  const below: PartOptions = { optimisation, pruning };
  const own = isEmpty(below) ? [] : mistakesOf([], below, {}, []);
  if (own.length > 0) return own;
  return Object.entries(profiles).flatMap(([name, profile]) =>
    isEmpty(profile) ? [] : mistakesOf([below], profile, profile, ["profiles", name]),
  );
}

function isEmpty({ optimisation, pruning }: PartOptions): boolean {
  return optimisation === undefined && pruning === undefined;
}

function mistakesOf(below: readonly PartOptions[], layer: PartOptions, tools: Profile, at: Place): Mistake[] {
  const { mistakes } = checkedParts([...below, layer], tools, layer);
  return [...mistakes, ...unusableFiles(layer)].map(({ place, why }) => ({ place: [...at, ...place], why }));
}

/** Files and directories that a layer names. */
export function filesIn(layer: PartOptions): readonly { place: Place; path: string }[] {
  return pathPlaces.flatMap((place) => {
    const path = place.reduce<unknown>((found, key) => (isRecord(found) ? found[key] : undefined), layer);
    return typeof path === "string" ? [{ place, path }] : [];
  });
}

/** Files that a layer names and that cannot be read. */
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
    return found.size > maxOptionFileBytes ? `is longer than ${maxOptionFileBytes} bytes` : undefined;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    return code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
  }
}

/** A mistake in a file: its JSON pointer, and a description. */
export interface FileMistake {
  readonly place: string;
  readonly words: string;
}

/** All mistakes of a file: those against its schema or, if there are none, those of its layers. */
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
      words: `${path === "" ? "the file" : named(path)} ${message}${suggestion(path, schema)}`,
    })),
    ...mistakes.map(({ at, mistake: { place, why } }) => told({ place: [...at, ...place.slice(1)], why })),
  ];
}

/** Names the key that is most similar to an unknown one. */
function suggestion(pointer: string, schema: JsonSchema): string {
  const keys = pointer.split("/").slice(1);
  const key = keys.pop() ?? "";
  let parent: JsonSchema | undefined = schema;
  for (const name of keys) {
    const { properties = {}, patternProperties = {} }: JsonSchema = parent ?? {};
    parent = Object.hasOwn(properties, name) ? properties[name] : Object.values(patternProperties)[0];
  }
  const { properties = {} } = parent ?? {};
  if (Object.hasOwn(properties, key)) return "";
  const near = nearest(key, Object.keys(properties), key.length < 5 ? 1 : 2);
  return near === undefined ? "" : `; the nearest is ${near}`;
}

function told({ place, why }: Mistake): FileMistake {
  return { place: pointerTo(place), words: `${placeName(place)}: ${why}` };
}

/** A part of an object is named like its setting: `context.maxNodes`. */
function named(pointer: string): string {
  const [, group = "", part = ""] = pointer.split("/");
  const name = `${group}.${part}`;
  return Object.hasOwn(settings, name) ? `${name}${pointer.slice(name.length + 1)}` : pointer;
}
