import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { messageOf } from "../../../extension/pi-types.ts";
import { builtInSynonyms, type Synonyms, synonymsWith } from "./synonyms.ts";

const maxBytes = 1_024 * 1_024;

/** Returns the built-in synonyms and those of a file; only the built-in ones if the file is unreadable. */
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
