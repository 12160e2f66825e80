import type { CommandSpec } from "./command-spec.ts";
import { help, session, stateDir } from "./common-options.ts";

/** The commands about the dialogs of extensions. */
export const dialogCommands = {
  dialogs: {
    summary: "Lists the open dialogs of extensions, oldest first.",
    arguments: [{ ...session, optional: true, description: `${session.description} Default: all sessions.` }],
    options: {
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: {dialogs: [...]}." },
      help,
    },
    examples: ["pi-rpcd dialogs", "pi-rpcd dialogs last --json"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  dialog: {
    summary: "Shows a dialog of an extension, or answers it.",
    description:
      "The first valid answer reaches the extension: `answer` exits with 4 if another answer, or the end of the dialog, was earlier. An invalid answer has no effect.",
    arguments: [
      { name: "ACTION", choices: ["show", "answer"], description: "What to do." },
      { name: "ID", description: "The dialog's id, or at least 4 characters of its start." },
      { name: "TEXT", many: true, optional: true, description: "The answer to a select, an input or an editor." },
    ],
    options: {
      yes: { type: "boolean", description: "Answers a confirm with yes." },
      no: { type: "boolean", description: "Answers a confirm with no." },
      cancel: { type: "boolean", description: "Dismisses it: the extension continues with its default." },
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the dialog, or how it ended, as one JSON document." },
      help,
    },
    examples: ["pi-rpcd dialog show Zk3v", "pi-rpcd dialog answer Zk3v --yes", "pi-rpcd dialog answer Zk3v Allow once"],
    exitCodes: [0, 1, 2, 3, 4, 130],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
