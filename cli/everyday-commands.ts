import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, session, stateDir } from "./common-options.ts";

const text = { name: "TEXT", many: true, description: "The message. `-` reads it from stdin." } as const;
const promptResult = { type: "boolean", description: "Prints one JSON document: promptId, disposition." } as const;

/** The commands that direct a session's agent, and show its models, its tree and its queue. */
export const everydayCommands = {
  abort: {
    summary: "Aborts a session's run or compaction, and waits until the session is idle.",
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
    summary: "Sends a message that the agent gets before its next request; starts a run if none is active.",
    description: "Returns when pi has accepted the message. `tail` and `attach` show the answer.",
    arguments: [session, text],
    options: { "no-start": noStart, "state-dir": stateDir, json: promptResult, help },
    examples: ["pi-rpcd steer last Use the other branch.", "git diff | pi-rpcd steer last -"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  "follow-up": {
    summary: "Sends a message that the agent gets when its run would end; starts a run if none is active.",
    description: "Returns when pi has accepted the message. `tail` and `attach` show the answer.",
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
      "`list` prints the models for which pi has credentials. With SESSION it asks the session's pi, whose extensions may add models, and marks the current model. `set` changes the model of this session only; it accepts a unique part of the model's name.",
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
          "Prints one JSON document: for show {model, thinkingLevel}, for set the model, for list the result of model/list.",
      },
      help,
    },
    examples: ["pi-rpcd model list", "pi-rpcd model show last", "pi-rpcd model set last anthropic/claude-sonnet-5"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  compact: {
    summary: "Replaces the older part of a session's context with a summary, and waits until it is done.",
    description: "Fails if a run is active. `pi-rpcd abort` aborts the compaction; Ctrl-C only ends this command.",
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
    summary: "Renames a session; `ls` shows the name, and commands accept it as SESSION.",
    arguments: [session, { name: "NAME", many: true, description: "The new name." }],
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
      "Each line begins with the id of its entry; `fork --at` accepts the ids of your messages. If the session's pi is not running, the command does not start it.",
    arguments: [session],
    options: {
      all: {
        type: "boolean",
        description: "Also draws tool results and pi's own entries, such as changes of the model.",
      },
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
      "Prints the path of the file, which only you can read. `context export` writes a conversation for other programs.",
    arguments: [
      session,
      {
        name: "FILE",
        optional: true,
        description:
          "The file; its ending, .html or .jsonl, selects the format. Default: session-ID.html in the current directory.",
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
