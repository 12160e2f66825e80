import type { CommandSpec } from "../command-spec.ts";
import { help, noStart, stateDir } from "../common-options.ts";

/** The command that editors start. */
export const connectCommands = {
  connect: {
    summary: "Forwards JSON-RPC between stdin, stdout and the daemon, for editors and scripts.",
    description:
      "Messages are forwarded unchanged in both directions. The command ends when its input has ended and every answer was written, or when the daemon ends the connection; it does not reconnect.",
    arguments: [],
    options: {
      framing: {
        type: "string",
        placeholder: "NAME",
        choices: ["jsonl", "content-length"],
        description: "One message per line, or the framing of the Language Server Protocol.",
        default: "jsonl",
      },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints errors on stderr as JSON." },
      help,
    },
    examples: [
      "pi-rpcd connect --framing content-length",
      `echo '{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}' | pi-rpcd connect`,
    ],
    exitCodes: [0, 1, 2, 3, 5, 130],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
