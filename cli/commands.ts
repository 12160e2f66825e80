import type { CommandSpec } from "./command-spec.ts";
import { config, help, noStart, pi, session, stateDir, unusedStateDir } from "./common-options.ts";
import { contextCommands } from "./context-commands.ts";
import { deliveryCommands } from "./delivery-commands.ts";
import { everydayCommands } from "./everyday-commands.ts";
import { hostCommands } from "./host-commands.ts";
import { sessionCommands } from "./session-commands.ts";
import { watchCommands } from "./watch-commands.ts";

/** Every command of the command line. The parser and all help texts derive from this table. */
export const commands = {
  start: {
    summary: "Starts the daemon in the background and waits until it answers.",
    description:
      "Prints its addresses and the path of its log. If a daemon already runs on the state directory, the command starts nothing and also exits with 0.",
    arguments: [],
    options: {
      foreground: {
        type: "boolean",
        description:
          "Runs the daemon in this process. The first SIGINT, SIGTERM or SIGHUP ends it gracefully, a second one at once. SIGUSR2 ends it for a restart, with exit code 75.",
      },
      restart: {
        type: "boolean",
        description:
          "Ends a running daemon gracefully and starts another, for example after an update. Active runs continue with `liveRestore`, otherwise they get time to end; sessions are kept.",
      },
      port: { type: "string", placeholder: "N", description: "TCP port on loopback.", default: "a free port" },
      pi,
      config,
      "allow-origins": {
        type: "string",
        placeholder: "LIST",
        description: "Origins of web pages that may connect (scheme, host and port), separated by commas.",
        default: "none",
      },
      "allow-hosts": {
        type: "string",
        placeholder: "LIST",
        description: "Additional names (host and port) that requests may use for the daemon, separated by commas.",
        default: "none",
      },
      listen: {
        type: "string",
        placeholder: "ADDRESS:PORT",
        description:
          "An additional address to listen at, outside the loopback interface. Needs --tls-cert and --tls-key.",
        default: "none",
      },
      "tls-cert": { type: "string", placeholder: "FILE", description: "The certificate for --listen, in PEM." },
      "tls-key": { type: "string", placeholder: "FILE", description: "The private key of the certificate, in PEM." },
      "log-file": {
        type: "string",
        placeholder: "FILE",
        description: "The log file.",
        default: "daemon.log in the state directory; with --foreground stderr",
      },
      "log-level": {
        type: "string",
        placeholder: "LEVEL",
        choices: ["trace", "debug", "info", "warn", "error", "fatal", "silent"],
        description: "The log level.",
        default: "info",
      },
      "state-dir": stateDir,
      json: {
        type: "boolean",
        description: "Prints one JSON document: started, pid, version, url, socketPath, stateDir, log.",
      },
      help,
    },
    examples: ["pi-rpcd start", "pi-rpcd start --port 7774 --pi ~/src/pi/dist/cli.js", "pi-rpcd start --foreground"],
    exitCodes: [0, 1, 2, 75, 130],
  },
  stop: {
    summary: "Ends the daemon gracefully, with its runs, pi processes and connections.",
    description:
      "Only signals a process that is proven to be the daemon of the state directory. Sessions are kept for the next daemon.",
    arguments: [],
    options: {
      timeout: {
        type: "string",
        placeholder: "SECONDS",
        description:
          "How long to wait for the end of the daemon. After that, the command fails and the daemon continues to shut down.",
        default: "60",
      },
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: stopped, stateDir, and pid or reason." },
      help,
    },
    examples: ["pi-rpcd stop"],
    exitCodes: [0, 1, 2, 5, 130],
  },
  config: {
    summary: "Shows the configuration that a new daemon would use, and the origin of each value.",
    description:
      "The configuration file (JSON with comments) overrides the defaults, the environment overrides the file, and the options of `pi-rpcd start` override both.",
    arguments: [],
    options: {
      config,
      schema: { type: "boolean", description: "Prints the JSON schema of the configuration file, for editors." },
      "state-dir": stateDir,
      json: {
        type: "boolean",
        description: "Prints one JSON document: stateDir, file, settings with value and origin.",
      },
      help,
    },
    examples: ["pi-rpcd config", "pi-rpcd config --schema"],
    exitCodes: [0, 1, 2, 130],
  },
  status: {
    summary: "Shows whether the daemon runs, which pi it uses, and how many sessions it has.",
    arguments: [],
    options: {
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: running, and the result of daemon/info." },
      help,
    },
    examples: ["pi-rpcd status", "pi-rpcd status --json"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  ls: {
    summary: "Lists the sessions, newest first.",
    arguments: [],
    options: {
      "no-start": noStart,
      "state-dir": stateDir,
      ids: { type: "boolean", description: "Prints only the ids, one per line." },
      json: { type: "boolean", description: "Prints one JSON document: {sessions: [...]}." },
      help,
    },
    examples: ["pi-rpcd ls", "pi-rpcd ls --ids"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  new: {
    summary: "Creates a session and prints its id.",
    arguments: [],
    options: {
      cwd: {
        type: "string",
        placeholder: "DIR",
        description: "The working directory of pi.",
        default: "the current directory",
      },
      model: {
        type: "string",
        placeholder: "MODEL",
        description: "provider/id, or a pattern that pi accepts.",
        default: "pi's own choice",
      },
      thinking: {
        type: "string",
        placeholder: "LEVEL",
        choices: ["off", "minimal", "low", "medium", "high", "xhigh", "max"],
        description: "The thinking level.",
        default: "pi's own choice",
      },
      name: {
        type: "string",
        placeholder: "NAME",
        description: "The session's name, which `ls` shows and commands accept as SESSION.",
      },
      tools: {
        type: "string",
        placeholder: "A,B",
        description: "The tools that the model may call.",
        default: "pi's own",
      },
      "exclude-tools": { type: "string", placeholder: "A,B", description: "Tools that the model may not call." },
      dialogs: {
        type: "string",
        placeholder: "WHAT",
        description:
          "What to do with an extension's dialog if no connected client answers dialogs: `cancel` it, `wait` for a client, or cancel it after this number of seconds.",
        default: "cancel",
      },
      approve: { type: "boolean", description: "Trusts the project's own pi settings and extensions." },
      profile: {
        type: "string",
        placeholder: "NAME",
        description: "The name of a set of options in the daemon's configuration.",
      },
      label: {
        type: "string",
        placeholder: "A=B,C",
        description: "Labels by which clients can find the session: names, each with an optional text.",
      },
      ephemeral: {
        type: "boolean",
        description: "Keeps the conversation only in pi's memory: it is lost when pi or the daemon ends.",
      },
      extension: {
        type: "string",
        placeholder: "A,B",
        description: "Files or directories of extensions to load in addition to pi's own.",
      },
      "append-system-prompt": {
        type: "string",
        placeholder: "TEXT",
        description: "A text to add to pi's system prompt.",
      },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the session as one JSON document." },
      help,
    },
    examples: ["pi-rpcd new --cwd ~/project", "pi-rpcd new --name review --thinking low --tools read,grep"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  prompt: {
    summary: "Sends a prompt and streams the answer until pi has settled.",
    description:
      "Prints the answer to stdout, and one line for each tool call to stderr. Ctrl-C aborts the run; a second Ctrl-C ends the command at once. On a terminal you can answer the dialogs of extensions; Ctrl-D dismisses a dialog.",
    arguments: [session, { name: "TEXT", many: true, description: "The prompt. `-` reads it from stdin." }],
    options: {
      "if-running": {
        type: "string",
        placeholder: "WHAT",
        choices: ["refuse", "steer", "followUp"],
        description:
          "What to do if a run is active: refuse the prompt, insert it before the run's next request, or insert it when the run would end.",
        default: "refuse",
      },
      "no-wait": {
        type: "boolean",
        description: "Returns when pi has accepted the prompt, and prints the prompt's id.",
      },
      "no-start": noStart,
      "state-dir": stateDir,
      json: {
        type: "boolean",
        description:
          "Prints the events as JSON lines, each in its envelope; with --no-wait the result as one JSON document.",
      },
      help,
    },
    examples: ["pi-rpcd prompt last What does this project do?", "git diff | pi-rpcd prompt 2f1b9c11 -"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  ...watchCommands,
  ...everydayCommands,
  ...deliveryCommands,
  ...sessionCommands,
  ...contextCommands,
  cost: {
    summary: "Shows the cost of a session: by phase, by model, and by purpose.",
    description:
      "The sums are pi's own, and include abandoned branches, failed attempts, summaries and cache warming. If parts of the optimisation or pruning are on, the command also estimates what they saved. It does not start pi. On a terminal each line has a bar that shows its share of the total.",
    arguments: [session],
    options: {
      "no-start": noStart,
      "state-dir": stateDir,
      json: {
        type: "boolean",
        description: "Prints the result of cost/report as one JSON document, with saved: {parts, pruning} or null.",
      },
      help,
    },
    examples: ["pi-rpcd cost last", "pi-rpcd cost 2f1b9c11 --json"],
    exitCodes: [0, 1, 2, 3, 130],
  },
  dialogs: {
    summary: "Lists the open dialogs of extensions, oldest first.",
    arguments: [{ ...session, optional: true, description: `${session.description} Default: all sessions.` }],
    options: {
      "no-start": noStart,
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
      "The extension gets the first valid answer. `answer` exits with 4 if another client answered first or the dialog had ended. An invalid answer has no effect.",
    arguments: [
      { name: "ACTION", choices: ["show", "answer"], description: "What to do." },
      { name: "ID", description: "The dialog's id, or at least 4 characters of its start or end." },
      { name: "TEXT", many: true, optional: true, description: "The answer to a select, an input or an editor." },
    ],
    options: {
      yes: { type: "boolean", description: "Answers a confirm with yes." },
      no: { type: "boolean", description: "Answers a confirm with no." },
      cancel: { type: "boolean", description: "Dismisses the dialog; the extension continues with its default." },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the dialog, or how it ended, as one JSON document." },
      help,
    },
    examples: ["pi-rpcd dialog show Zk3v", "pi-rpcd dialog answer Zk3v --yes", "pi-rpcd dialog answer Zk3v Allow once"],
    exitCodes: [0, 1, 2, 3, 4, 130],
  },
  connect: {
    summary: "Forwards JSON-RPC between stdin, stdout and the daemon, for editors and scripts.",
    description:
      "Messages are forwarded unchanged in both directions. The command ends when its input has ended and every answer was written, or when the daemon ends the connection; it does not reconnect.",
    arguments: [],
    options: {
      framing: {
        type: "string",
        placeholder: "NAME",
        choices: ["jsonl", "content-length"],
        description: "One message per line, or the framing of the Language Server Protocol.",
        default: "jsonl",
      },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints errors on stderr as JSON." },
      help,
    },
    examples: [
      "pi-rpcd connect --framing content-length",
      `echo '{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}' | pi-rpcd connect`,
    ],
    exitCodes: [0, 1, 2, 3, 5, 130],
  },
  ...hostCommands,
  demo: {
    summary: "Runs an end-to-end demo on real pi with a scripted model (no key, no network).",
    description:
      "Starts a provider on loopback, a daemon and a session in a temporary directory, pushes a message while a tool runs, and compares its receipt with the provider's log. Exits with 0 only if every check passed.",
    arguments: [],
    options: {
      keep: { type: "boolean", description: "Keeps the directory, with the daemon's log and pi's session file." },
      pi,
      "state-dir": unusedStateDir,
      json: { type: "boolean", description: "Prints the steps as JSON lines." },
      help,
    },
    examples: ["pi-rpcd demo"],
    exitCodes: [0, 1, 2, 130],
  },
  try: {
    summary: "Opens a session with a scripted model in `attach`, to try it (no key, no network).",
    description:
      "Starts a provider on loopback, a daemon and a session in a temporary directory. Whatever you type, the model shows a tool call, a push with its receipt, and a question. When you leave or close the terminal, the command ends all its processes and removes all its files. It does not read or change your own sessions or pi's settings.",
    arguments: [],
    options: {
      pi,
      "state-dir": unusedStateDir,
      json: { type: "boolean", description: "Has no effect: this command needs a terminal." },
      help,
    },
    examples: ["pi-rpcd try"],
    exitCodes: [0, 1, 2, 130],
  },
  help: {
    summary: "Shows this overview, or the help of one command.",
    arguments: [{ name: "COMMAND", optional: true, description: "The command." }],
    options: {
      "state-dir": unusedStateDir,
      json: { type: "boolean", description: "Prints the table of commands as one JSON document." },
      help,
    },
    examples: ["pi-rpcd help push"],
    exitCodes: [0, 2],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
