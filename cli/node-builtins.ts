import type * as fs from "node:fs";
import type * as util from "node:util";

/**
 * What every command uses of two of Node's modules. An `import` of them reads all that they export, some of which is loaded only
 * then: a few milliseconds at each start.
 */
export const { parseArgs, styleText }: Pick<typeof util, "parseArgs" | "styleText"> =
  process.getBuiltinModule("node:util");
export const { readFileSync }: Pick<typeof fs, "readFileSync"> = process.getBuiltinModule("node:fs");
