import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { messageOf } from "../../../extension/pi-types.ts";
import { builtInSynonyms, type Synonyms, synonymsWith } from "./synonyms.ts";

const maxBytes = 1_024 * 1_024;

/** The built-in synonyms with those of a file; the built-in ones alone if the file cannot be read. */
export function readSynonyms(path: string | null, cwd: string, failed: (reason: string) => void): Synonyms {
  if (path === null) return builtInSynonyms;
  try {
    const file = resolve(cwd, path);
    const { size } = statSync(file);
    if (size > maxBytes) throw new Error(`It has ${size} bytes; at most ${maxBytes} are read.`);
    return synonymsWith(readFileSync(file, "utf8"));
  } catch (thrown) {
    failed(`dynamicTools.synonyms was not read. ${messageOf(thrown)}`.slice(0, 1_000).toWellFormed());
    return builtInSynonyms;
  }
}
