import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, session, stateDir } from "./common-options.ts";

/** The commands that follow a session. */
export const watchCommands = {
  attach: {
    summary: "Shows a session live, and sends prompts and answers to it; Ctrl-D leaves.",
    description:
      "Shows the recent past first. Enter sends your text; during a run the agent gets it before its next request (see --if-running). Alt-Enter queues it until the run would end. Esc aborts the run or dismisses an extension's dialog. Ctrl-C clears your text. A second Ctrl-C, or Ctrl-D, leaves; the session continues. ? or /help lists the other keys, commands such as /model and /sessions, and !COMMAND for the shell; none of these reaches the model. If the daemon ends, the command keeps your text, waits for the next daemon, and reports what it missed. Without a terminal it only shows the session.",
    arguments: [session],
    options: {
      past: {
        type: "string",
        placeholder: "N",
        description:
          "The number of recent messages and tool calls to show first, at most 500. With --json none are shown.",
        default: "20",
      },
      "if-running": {
        type: "string",
        placeholder: "WHAT",
        choices: ["steer", "followUp"],
        description: "When a text is inserted during a run: before its next request, or when the run would end.",
        default: "steer",
      },
      "no-thinking": {
        type: "boolean",
        description: "Hides the model's thinking. Otherwise a terminal shows one row of it.",
      },
      "view-only": { type: "boolean", description: "Does not read from the terminal or answer dialogs." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the daemon's notifications from now on, one per line." },
      help,
    },
    examples: ["pi-rpcd attach last", "pi-rpcd attach 2f1b9c11 --if-running followUp", "pi-rpcd attach last --json"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  tail: {
    summary: "Prints a session's log, a line for each notification, and follows it.",
    description:
      "Continues until Ctrl-C or until the session is closed. High-rate events (pieces of text and of tool output) are only printed if --filter names them.",
    arguments: [session],
    options: {
      since: {
        type: "string",
        placeholder: "SEQ",
        description: "Starts after this sequence number of the log. 0 prints everything that the log still has.",
        default: "the newest 20 lines",
      },
      filter: {
        type: "string",
        placeholder: "LIST",
        description:
          "Prints only these, separated by commas: notifications (run/ended), groups of notifications (run/*), or pi's events (message_end).",
        default: "all",
      },
      "no-follow": { type: "boolean", description: "Ends after the newest notification." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the notifications as they are on the wire, one per line." },
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
