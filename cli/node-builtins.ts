import type * as fs from "node:fs";
import type * as util from "node:util";

/**
 * The functions that every command uses of two Node modules. An `import` evaluates every export, some of which are
 * loaded lazily, and costs a few milliseconds at each start.
 */
export const {
  parseArgs,
  stripVTControlCharacters,
  styleText,
}: Pick<typeof util, "parseArgs" | "stripVTControlCharacters" | "styleText"> = process.getBuiltinModule("node:util");
export const {
  existsSync,
  readFileSync,
  readlinkSync,
}: Pick<typeof fs, "existsSync" | "readFileSync" | "readlinkSync"> = process.getBuiltinModule("node:fs");
