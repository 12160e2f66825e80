import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, stateDir } from "./common-options.ts";

/** The commands that import and export conversations. */
export const contextCommands = {
  context: {
    summary: "Gives a new session a past, takes one out of a session, and shows what one is made of.",
    description:
      "`import` makes a session that goes on with the conversation of SOURCE and prints its id; what was mended in it stands on stderr. `inspect` shows what a document would come to for a model, or another session with any of its options; without them, what the session itself was given. `export` prints a session, or a session file of pi's, as a document. `show` says what a session's next request is made of, what parts of the optimisation have saved and masked, which blocks pruning has made, and what has broken the provider's cache.",
    arguments: [
      { name: "ACTION", choices: ["inspect", "export", "import", "show"], description: "What to do." },
      {
        name: "SOURCE",
        description:
          "A session (an id, 4 or more characters of its start or its end, or `last`) or a file: with inspect and import a document, - is stdin; with export a session file of pi's. show takes sessions only.",
      },
    ],
    options: {
      node: {
        type: "string",
        placeholder: "ID",
        description: "inspect, import: the node of the document's tree where the conversation ends.",
        default: "the document's leafId",
      },
      until: {
        type: "string",
        placeholder: "WHERE",
        choices: ["before", "through"],
        description: "inspect, import: whether that node itself is left out.",
        default: "before for a user's node, else through",
      },
      leaf: {
        type: "string",
        placeholder: "ENTRY",
        description: "With a session: the last entry of the branch.",
        default: "that of the session",
      },
      model: { type: "string", placeholder: "MODEL", description: "inspect, import: the model that it is for." },
      cwd: {
        type: "string",
        placeholder: "DIR",
        description: "import: where the agent works.",
        default: "the current directory",
      },
      name: { type: "string", placeholder: "NAME", description: "import: the new session's name." },
      ephemeral: { type: "boolean", description: "import: nothing of the new session is written to a session file." },
      "max-tokens": {
        type: "string",
        placeholder: "N",
        description: "inspect, import: the budget in tokens, by estimate; auto: what the model's window leaves; none.",
        default: "auto",
      },
      "on-overflow": {
        type: "string",
        placeholder: "WHAT",
        choices: ["trim", "error", "keep"],
        description: "inspect, import: beyond the budget the oldest is left out, or it is refused, or all is kept.",
        default: "trim",
      },
      "tool-results": {
        type: "string",
        placeholder: "N",
        description: "inspect, import: characters of one tool result, from 200; what is longer loses its middle.",
        default: "all",
      },
      "no-repair": {
        type: "boolean",
        description: "inspect, import: refuses what no provider would take, instead of mending it.",
      },
      "no-system": { type: "boolean", description: "inspect, import: leaves out system messages." },
      "no-events": { type: "boolean", description: "inspect, import: leaves out events." },
      view: {
        type: "string",
        placeholder: "VIEW",
        choices: ["projected", "full"],
        description: "export: what the model sees, or the whole tree with all its branches.",
        default: "projected",
      },
      "include-system": { type: "boolean", description: "export: system messages too." },
      "include-reasoning": { type: "boolean", description: "export: what the model has thought, too." },
      "no-images": { type: "boolean", description: "export: leaves out images." },
      output: {
        type: "string",
        placeholder: "FILE",
        description: "export: where the document goes; the file is readable by you alone.",
        default: "stdout",
      },
      force: { type: "boolean", description: "export: replaces FILE if there is one." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: {
        type: "boolean",
        description:
          "Prints one JSON document: what inspect has found; the new session; {document, diagnostics}, or with --output {path, bytes, sha256, diagnostics}; with show what `optimisation/inspect` says, with sessionId, cache (what `cache/report` says, or null) and pruning (what `pruning/inspect` says, or null).",
      },
      help,
    },
    examples: [
      "pi-rpcd context inspect conversation.json --model anthropic/claude-sonnet-5",
      "pi-rpcd context import conversation.json --cwd ~/project --max-tokens 50000",
      "pi-rpcd context export last --output conversation.json",
      "pi-rpcd context import last --model openai/gpt-6",
      "pi-rpcd context show last",
    ],
    exitCodes: [0, 1, 2, 3, 130],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
