import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, session, stateDir } from "./common-options.ts";

/** The commands that follow a session. */
export const watchCommands = {
  attach: {
    summary: "Shows a session live, and talks to it: prompts, answers, Ctrl-C to abort.",
    description:
      "Begins with what happened last. A line that is typed is a prompt; while a run is on it enters the next request (--if-running). An extension's question is answered by the next line: a number or the text of a select, y or n, a text; Ctrl-D dismisses it. Ctrl-C aborts the run, a second one leaves, and so does Ctrl-D; the session goes on. A daemon that ends is waited for, and what cannot be shown of the time between is named. Without a terminal it only shows.",
    arguments: [session],
    options: {
      past: {
        type: "string",
        placeholder: "N",
        description: "How many of the last messages and tool calls are shown first, at most 500; with --json none.",
        default: "20",
      },
      "if-running": {
        type: "string",
        placeholder: "WHAT",
        choices: ["steer", "followUp"],
        description: "What a line is while a run is on: in its next request, or when it would end.",
        default: "steer",
      },
      "no-thinking": { type: "boolean", description: "Leaves out what the model thinks." },
      "view-only": { type: "boolean", description: "Reads nothing from the terminal, and answers no question." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the daemon's notifications from now on, a line each." },
      help,
    },
    examples: ["pi-rpcd attach last", "pi-rpcd attach 0199c2 --if-running followUp", "pi-rpcd attach last --json"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  tail: {
    summary: "Prints a session's log, a line for each notification, and goes on with it.",
    description:
      "Until Ctrl-C, or until the session is closed. The high-rate events, pieces of text and of tools' output, are left out unless --filter names them.",
    arguments: [session],
    options: {
      since: {
        type: "string",
        placeholder: "SEQ",
        description: "The last number that is known already; 0: all that is kept.",
        default: "the newest 20 lines",
      },
      filter: {
        type: "string",
        placeholder: "LIST",
        description:
          "Only these, with commas between them: notifications (run/ended), groups of them (run/*), pi's events (message_end).",
        default: "all",
      },
      "no-follow": { type: "boolean", description: "Ends at the newest." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the notifications as they are on the wire, a line each." },
      help,
    },
    examples: [
      "pi-rpcd tail last",
      "pi-rpcd tail last --since 0 --no-follow --json",
      "pi-rpcd tail last --filter run/*,message_end",
    ],
    exitCodes: [0, 1, 2, 3, 130],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
