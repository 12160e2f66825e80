import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, session, stateDir } from "./common-options.ts";

/** The commands about pi's session files. */
export const sessionCommands = {
  open: {
    summary: "Takes a stored pi session, also one of a terminal pi, into the daemon's hands.",
    description:
      "Prints its id, under which the other commands have it then. Without a session it lists what is stored.",
    arguments: [
      { name: "STORED", optional: true, description: "The whole id of the session, or the path of its file." },
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
    summary: "Makes a new session of a session's transcript, whole or up to one of your messages.",
    description:
      "Prints the new session's id. It takes over the running pi; the old session keeps its file and wakes when it is used.",
    arguments: [session],
    options: {
      at: {
        type: "string",
        placeholder: "ENTRY",
        description: "The entry of the message that the new session begins before; --list shows them.",
        default: "the whole transcript",
      },
      list: { type: "boolean", description: "Lists your messages with their entries, and forks nothing." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints {session, text} as one JSON document, or {messages} with --list." },
      help,
    },
    examples: ["pi-rpcd fork last", "pi-rpcd fork last --list", "pi-rpcd fork last --at 3f2a9c01"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  hibernate: {
    summary: "Ends a session's pi and keeps the session: the next prompt or push starts another.",
    arguments: [session],
    options: {
      force: { type: "boolean", description: "Also in the middle of a run, which is interrupted then." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the session as one JSON document." },
      help,
    },
    examples: ["pi-rpcd hibernate last", "pi-rpcd hibernate 0199c2 --force"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  close: {
    summary: "Ends a session's pi and forgets the session; its transcript stays, for `open`.",
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
    arguments: [session],
    options: {
      yes: { type: "boolean", description: "Needed: the transcript is gone for good." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: {deleted}." },
      help,
    },
    examples: ["pi-rpcd rm 0199c2 --yes"],
    exitCodes: [0, 1, 2, 3, 130],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
