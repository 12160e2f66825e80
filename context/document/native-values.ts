import type { Meta } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { NoteExport } from "./export-notes.ts";

/**
 * Maximum nesting of foreign data in an entry, and in a document. This one applies to a call's arguments, to a field of
 * `meta.native`, and by default.
 */
export const MAX_DATA_DEPTH = 64;
/** In a field of an item. */
export const MAX_FIELD_DEPTH = MAX_DATA_DEPTH + 2;
/** In a block of an item. */
export const MAX_BLOCK_DEPTH = MAX_DATA_DEPTH + 1;
/** In a block of an edit's replacement. */
export const MAX_EDIT_BLOCK_DEPTH = MAX_DATA_DEPTH - 2;

/**
 * Returns foreign data that any program can write and read as JSON: at most `maxDepth` levels, without keys that would
 * set a prototype. Valid data is returned unchanged; too deep data is `undefined`.
 */
export function soundData(value: unknown, maxDepth = MAX_DATA_DEPTH): unknown {
  const found = look(value, maxDepth);
  if (found === "sound") return value;
  if (found === "deep") return undefined;
  return JSON.parse(JSON.stringify(value, (key, held: unknown) => (key === "__proto__" ? undefined : held)));
}

/** {@link soundData} with a note about data that cannot be kept unchanged. */
export function keptData(value: unknown, note: NoteExport, maxDepth = MAX_DATA_DEPTH): unknown {
  const sound = soundData(value, maxDepth);
  if (sound !== value) note("unsound_data");
  return sound;
}

/** {@link keptData} for an object; `undefined` for anything else. */
export function keptObject(value: unknown, note: NoteExport, maxDepth = MAX_DATA_DEPTH): Meta | undefined {
  const sound = isRecord(value) ? keptData(value, note, maxDepth) : undefined;
  return isRecord(sound) ? sound : undefined;
}

/** Visits each value once, level by level, so that depth does not use the stack. */
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
