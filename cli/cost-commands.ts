import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, session, stateDir } from "./common-options.ts";

/** The commands about the cost of sessions. */
export const costCommands = {
  cost: {
    summary: "Shows the cost of a session: by phase, by model, and by purpose.",
    description:
      "The sums are those of pi, with abandoned branches, failed attempts, summaries and cache warming. No pi is started. On a terminal each line has a bar with its share of the total.",
    arguments: [session],
    options: {
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the result of cost/report as one JSON document." },
      help,
    },
    examples: ["pi-rpcd cost last", "pi-rpcd cost 0199c2 --json"],
    exitCodes: [0, 1, 2, 3, 130],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
