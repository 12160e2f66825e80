import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, session, stateDir } from "./common-options.ts";

const text = { name: "TEXT", many: true, description: "The message. `-` reads it from stdin." } as const;
const promptResult = { type: "boolean", description: "Prints one JSON document: promptId, disposition." } as const;

/** The commands that direct a session's agent, and show its models, its tree and its queue. */
export const everydayCommands = {
  abort: {
    summary: "Aborts the run of a session, or its compaction, and waits until it is idle.",
    description: "Pushes that the run has not delivered are parked, or dropped if they were sent with --on-abort drop.",
    arguments: [session],
    options: {
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: {aborted, deliveries}." },
      help,
    },
    examples: ["pi-rpcd abort last"],
    exitCodes: [0, 1, 2, 3, 5, 130],
  },
  steer: {
    summary: "Sends a message that the agent gets before its next request; starts a run if there is none.",
    description: "Returns when pi has accepted the message; `tail` or `attach` shows what follows.",
    arguments: [session, text],
    options: { "no-start": noStart, "state-dir": stateDir, json: promptResult, help },
    examples: ["pi-rpcd steer last Use the other branch.", "git diff | pi-rpcd steer last -"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  "follow-up": {
    summary: "Sends a message that the agent gets when its run would end; starts a run if there is none.",
    description: "Returns when pi has accepted the message; `tail` or `attach` shows what follows.",
    arguments: [session, text],
    options: { "no-start": noStart, "state-dir": stateDir, json: promptResult, help },
    examples: ["pi-rpcd follow-up last Then run the tests."],
    exitCodes: [0, 1, 2, 3, 130],
  },
  queue: {
    summary: "Shows the messages that wait in a session's queue, or removes them.",
    description:
      "`show` prints them in the order in which the agent gets them. `clear` prints the removed texts, and also drops pushes that were sent with --on-clear drop.",
    arguments: [{ name: "ACTION", choices: ["show", "clear"], description: "What to do." }, session],
    options: {
      "no-start": noStart,
      "state-dir": stateDir,
      json: {
        type: "boolean",
        description: "Prints one JSON document: {steering, followUp}; with `clear` the removed texts, and deliveries.",
      },
      help,
    },
    examples: ["pi-rpcd queue show last", "pi-rpcd queue clear last"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  model: {
    summary: "Shows or sets the model of a session, or lists the models by provider.",
    description:
      "`list` prints the models that pi has credentials for, of all sessions or of SESSION with its current model marked. `set` changes the model of this session only; it accepts a unique part of the model's name.",
    arguments: [
      { name: "ACTION", choices: ["show", "set", "list"], description: "What to do." },
      { ...session, optional: true, description: `${session.description} Optional for list.` },
      { name: "MODEL", optional: true, description: "set: provider/id, or a unique part of it." },
    ],
    options: {
      "no-start": noStart,
      "state-dir": stateDir,
      json: {
        type: "boolean",
        description:
          "Prints one JSON document: show {model, thinkingLevel}, set the model, list the result of model/list.",
      },
      help,
    },
    examples: ["pi-rpcd model list", "pi-rpcd model show last", "pi-rpcd model set last anthropic/claude-sonnet-5"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  compact: {
    summary: "Replaces the older part of a session's context with a summary, and waits until it is done.",
    description: "Not possible during a run. `pi-rpcd abort` ends the compaction; Ctrl-C only ends the wait.",
    arguments: [
      session,
      { ...text, optional: true, description: "What the summary must keep. `-` reads it from stdin." },
    ],
    options: {
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: {compaction, deliveries}." },
      help,
    },
    examples: ["pi-rpcd compact last", "pi-rpcd compact last Keep the names of the tests."],
    exitCodes: [0, 1, 2, 3, 130],
  },
  rename: {
    summary: "Gives a session a name, which lists show and commands accept.",
    arguments: [session, { name: "NAME", many: true, description: "The name." }],
    options: {
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: {sessionId, name}." },
      help,
    },
    examples: ["pi-rpcd rename last review of the parser"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  tree: {
    summary: "Draws the tree of a session's messages, with its branches, labels and the current end.",
    description:
      "A line begins with the entry's id, which `fork --at` accepts for your messages. Starts no pi for a session that has none.",
    arguments: [session],
    options: {
      all: { type: "boolean", description: "Also tool results and pi's own entries, such as changes of the model." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: {leafId, labels, entries}." },
      help,
    },
    examples: ["pi-rpcd tree last", "pi-rpcd tree last --all"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  export: {
    summary: "Writes a session as an HTML page to read and share, or as pi's own session file.",
    description:
      "Prints the path. Only you can read the file. `context export` writes a conversation for other programs.",
    arguments: [
      session,
      {
        name: "FILE",
        optional: true,
        description: "Ends in .html or .jsonl, which chooses the form. Default: session-ID.html in this directory.",
      },
    ],
    options: {
      force: { type: "boolean", description: "Replaces an existing FILE." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: {path, bytes}." },
      help,
    },
    examples: ["pi-rpcd export last", "pi-rpcd export last review.html --force", "pi-rpcd export last review.jsonl"],
    exitCodes: [0, 1, 2, 3, 130],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
