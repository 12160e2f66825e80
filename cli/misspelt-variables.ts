import { nearest } from "../protocol/configuration/nearest.ts";
import { settings } from "../server/configuration/settings.ts";
import type { Output } from "./output.ts";

const prefix = "PI_RPCD_";

/** Notes the variables that are similar to a setting's, but set nothing: typing mistakes, not other programs' variables. */
export function noteMisspelt(env: NodeJS.ProcessEnv, output: Output): void {
  const known = [
    "STATE_DIR",
    ...Object.values(settings).flatMap((row) => ("env" in row ? [row.env.slice(prefix.length)] : [])),
  ];
  for (const name of Object.keys(env)) {
    const word = name.slice(prefix.length);
    if (!name.startsWith(prefix) || known.includes(word)) continue;
    // The unit may be missing, too: `IDLE_AFTR` is `IDLE_AFTER_MS`.
    const near = nearest(word, known, word.length < 5 ? 1 : Math.min(4, Math.floor(word.length / 2)));
    if (near !== undefined) output.note("variable_unknown", `${name} has no effect. Did you mean ${prefix}${near}?`);
  }
}
