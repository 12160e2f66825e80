import type { CommandSpec } from "./command-spec.ts";
import { help, noStart, stateDir } from "./common-options.ts";

/** The commands that import and export conversations. */
export const contextCommands = {
  context: {
    summary: "Imports a conversation into a new session, exports one, or shows a session's context.",
    description:
      "`import` creates a session that continues the conversation of SOURCE, prints its id, and lists repairs on stderr. `inspect` shows the context that a model would get from a document, or from a session with any of the options. For a session without options it shows the context with which the session was created. `export` prints a session, or a session file of pi, as a document. `show` shows the content of a session's next request, what the parts of the optimisation saved and masked, the blocks of pruning, and what broke the provider's cache.",
    arguments: [
      { name: "ACTION", choices: ["inspect", "export", "import", "show"], description: "What to do." },
      {
        name: "SOURCE",
        description:
          "A session (at least 4 characters of the end or start of its id, its name, a unique part of its name or of its directory's name, or `last`) or a file: a document for inspect and import (- is stdin), a session file of pi for export. show only accepts sessions.",
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
        description: "inspect, import: whether to exclude or include that node.",
        default: "before for a user's node, otherwise through",
      },
      leaf: {
        type: "string",
        placeholder: "ENTRY",
        description: "With a session: the last entry of the branch.",
        default: "the session's leaf",
      },
      model: { type: "string", placeholder: "MODEL", description: "inspect, import: the target model." },
      cwd: {
        type: "string",
        placeholder: "DIR",
        description: "import: the agent's working directory.",
        default: "the current directory",
      },
      name: { type: "string", placeholder: "NAME", description: "import: the new session's name." },
      ephemeral: { type: "boolean", description: "import: does not write a session file for the new session." },
      "max-tokens": {
        type: "string",
        placeholder: "N",
        description:
          "inspect, import: the budget in estimated tokens; auto: the free part of the model's window; none: no limit.",
        default: "auto",
      },
      "on-overflow": {
        type: "string",
        placeholder: "WHAT",
        choices: ["trim", "error", "keep"],
        description:
          "inspect, import: what to do if the context exceeds the budget: trim the oldest messages, refuse, or keep everything.",
        default: "trim",
      },
      "tool-results": {
        type: "string",
        placeholder: "N",
        description:
          "inspect, import: the maximum number of characters of a tool result, at least 200. The middle of a longer result is removed.",
        default: "all",
      },
      "no-repair": {
        type: "boolean",
        description:
          "inspect, import: refuses a conversation that providers would not accept, instead of repairing it.",
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
      "include-system": { type: "boolean", description: "export: includes system messages." },
      "include-reasoning": { type: "boolean", description: "export: includes the model's reasoning." },
      "no-images": { type: "boolean", description: "export: leaves out images." },
      output: {
        type: "string",
        placeholder: "FILE",
        description: "export: the file for the document; only you can read it.",
        default: "stdout",
      },
      force: { type: "boolean", description: "export: replaces an existing FILE." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: {
        type: "boolean",
        description:
          "Prints one JSON document. inspect: its result; import: the new session; export: {document, diagnostics}, or with --output {path, bytes, sha256, diagnostics}; show: the result of `optimisation/inspect`, with sessionId, cache (the result of `cache/report`, or null), pruning (the result of `pruning/inspect`, or null) and pruningStats (the result of `pruning/stats`, or null).",
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
