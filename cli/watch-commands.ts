import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, session, stateDir } from "./common-options.ts";

/** The commands that follow a session. */
export const watchCommands = {
  attach: {
    summary: "Shows a session live, and sends prompts and answers to it; Ctrl-D leaves.",
    description:
      "Begins with the recent past. Enter sends what you typed, during a run before its next request (--if-running); Alt-Enter queues it until the run would end. Esc aborts the run or dismisses an extension's dialog. Ctrl-C clears what you typed, and twice leaves, as Ctrl-D does; the session continues. ? or /help lists the other keys, the commands such as /model and /sessions, and !COMMAND for the shell: none of these reaches the model. If the daemon ends, the command waits for the next one, keeps what you typed, and reports what it missed. Without a terminal it only shows.",
    arguments: [session],
    options: {
      past: {
        type: "string",
        placeholder: "N",
        description: "How many recent messages and tool calls are shown first, at most 500; with --json none.",
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
        description: "Hides the model's thinking, of which a terminal otherwise shows one row.",
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
      "Continues until Ctrl-C or until the session is closed. High-rate events, which are pieces of text and of tool output, are only printed if --filter names them.",
    arguments: [session],
    options: {
      since: {
        type: "string",
        placeholder: "SEQ",
        description: "Starts after this number of the log; 0: everything that is kept.",
        default: "the newest 20 lines",
      },
      filter: {
        type: "string",
        placeholder: "LIST",
        description:
          "Only these, separated by commas: notifications (run/ended), groups of them (run/*), pi's events (message_end).",
        default: "all",
      },
      "no-follow": { type: "boolean", description: "Ends at the newest notification." },
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
