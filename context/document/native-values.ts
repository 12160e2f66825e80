import type { Meta } from "../../protocol/link-context.ts";
import type { NoteExport } from "./export-notes.ts";
import { isObject } from "./measure.ts";

/**
 * Levels of objects and arrays that are kept of what others have put into an entry: no document may have more. Here in a
 * call's arguments, in a field of `meta.native`, and where nothing else is said.
 */
export const MAX_DATA_DEPTH = 64;
/** In a field of an item. */
export const MAX_FIELD_DEPTH = MAX_DATA_DEPTH + 2;
/** In one of an item's blocks. */
export const MAX_BLOCK_DEPTH = MAX_DATA_DEPTH + 1;
/** In a block of what an edit puts in the place of a message. */
export const MAX_EDIT_BLOCK_DEPTH = MAX_DATA_DEPTH - 2;

/**
 * Foreign data that can be written as JSON and read again by anyone: no deeper than `maxDepth` levels, without keys
 * that would set a prototype. Data that is sound already is given as it is; too deep data is `undefined`.
 */
export function soundData(value: unknown, maxDepth = MAX_DATA_DEPTH): unknown {
  const found = look(value, maxDepth);
  if (found === "sound") return value;
  if (found === "deep") return undefined;
  return JSON.parse(JSON.stringify(value, (key, held: unknown) => (key === "__proto__" ? undefined : held)));
}

/** The same, where it is noted what cannot be kept as it is. */
export function keptData(value: unknown, note: NoteExport, maxDepth = MAX_DATA_DEPTH): unknown {
  const sound = soundData(value, maxDepth);
  if (sound !== value) note("unsound_data");
  return sound;
}

/** The same of an object; `undefined` for anything else. */
export function keptObject(value: unknown, note: NoteExport, maxDepth = MAX_DATA_DEPTH): Meta | undefined {
  const sound = isObject(value) ? keptData(value, note, maxDepth) : undefined;
  return isObject(sound) ? sound : undefined;
}

/** Looks at each value once, level by level, so that depth costs no stack. */
function look(value: unknown, maxDepth: number): "sound" | "deep" | "proto" {
  let level: unknown[] = [value];
  let found: "sound" | "proto" = "sound";
  for (let depth = 0; level.length > 0; depth++) {
    const next: unknown[] = [];
    for (const held of level) {
      if (typeof held !== "object" || held === null) continue;
      if (depth >= maxDepth) return "deep";
      if (Object.hasOwn(held, "__proto__")) found = "proto";
      for (const inner of Array.isArray(held) ? held : Object.values(held)) {
        if (typeof inner === "object" && inner !== null) next.push(inner);
      }
    }
    level = next;
  }
  return found;
}
