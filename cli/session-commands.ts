import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, session, stateDir } from "./common-options.ts";

/** The commands about pi's session files. */
export const sessionCommands = {
  open: {
    summary: "Adopts an existing pi session, including one started in a terminal.",
    description: "Prints its id, which the other commands then accept. Without STORED it lists the stored sessions.",
    arguments: [
      {
        name: "STORED",
        optional: true,
        description:
          "The path of the session's file, or anything that other commands accept as SESSION, except `last`.",
      },
    ],
    options: {
      cwd: {
        type: "string",
        placeholder: "DIR",
        description: "Lists only sessions of this directory.",
        default: "all",
      },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the session, or {sessions: [...]}, as one JSON document." },
      help,
    },
    examples: ["pi-rpcd open", "pi-rpcd open 0199c2a4-7c1e-7f6b-8a55-0d6f2f1b9c11"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  fork: {
    summary: "Creates a new session from a transcript, complete or up to one of your messages.",
    description:
      "Prints the new session's id. The new session takes over the pi process; the old session keeps its file and wakes when it is used.",
    arguments: [session],
    options: {
      at: {
        type: "string",
        placeholder: "ENTRY",
        description:
          "The entry of one of your messages. The new session ends before this message. --list shows the entries.",
        default: "the complete transcript",
      },
      list: { type: "boolean", description: "Lists your messages with their entries, and does not fork." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints {session, text} as one JSON document, or {messages} with --list." },
      help,
    },
    examples: ["pi-rpcd fork last", "pi-rpcd fork last --list", "pi-rpcd fork last --at 3f2a9c01"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  hibernate: {
    summary: "Ends a session's pi and keeps the session: the next prompt or push starts pi again.",
    arguments: [session],
    options: {
      force: { type: "boolean", description: "Also works during a run, and interrupts it." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the session as one JSON document." },
      help,
    },
    examples: ["pi-rpcd hibernate last", "pi-rpcd hibernate 2f1b9c11 --force"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  close: {
    summary: "Ends a session's pi and forgets the session; its transcript is kept for `open`.",
    arguments: [session],
    options: {
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: {closed, deliveries}, and how pi ended." },
      help,
    },
    examples: ["pi-rpcd close last"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  rm: {
    summary: "Ends a session and deletes its transcript.",
    arguments: [
      {
        ...session,
        description: "A session: at least 4 characters of the end or start of its id, its complete name, or `last`.",
      },
    ],
    options: {
      yes: { type: "boolean", description: "Required, because the transcript is deleted permanently." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: {deleted}." },
      help,
    },
    examples: ["pi-rpcd rm 2f1b9c11 --yes"],
    exitCodes: [0, 1, 2, 3, 130],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
