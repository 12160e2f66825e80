import type { CommandSpec } from "./command-spec.ts";
import { config, help, noStart, pi, stateDir, unusedStateDir } from "./common-options.ts";

/** The commands about this machine. */
export const hostCommands = {
  pi: {
    summary: "Runs the daemon's pi in this terminal, for example for `/login`.",
    description:
      "Runs the pi that the running daemon uses, or that a new daemon would use, with the same logins. The first word that is not an option of this command, and all words after it, are passed to pi unchanged. The exit code is that of pi.",
    arguments: [
      {
        name: "ARGUMENT",
        many: true,
        passed: true,
        optional: true,
        description: "Arguments for pi, also after `--`.",
      },
    ],
    options: {
      pi,
      config,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints an error of this command on stderr as JSON." },
      help,
    },
    examples: ["pi-rpcd pi", "pi-rpcd pi --version", "pi-rpcd pi -- --help"],
    exitCodes: [0, 1, 2],
  },
  acp: {
    summary: "Speaks the Agent Client Protocol on stdin and stdout, for editors.",
    description:
      "For editors that speak ACP, such as Zed and those of JetBrains: docs/acp.md shows what to configure. Sessions are those of the daemon: they go on when the editor ends, and other clients see them.",
    arguments: [],
    options: {
      model: { type: "string", placeholder: "MODEL", description: "The model of new sessions.", default: "pi's" },
      thinking: {
        type: "string",
        placeholder: "LEVEL",
        choices: ["off", "minimal", "low", "medium", "high", "xhigh", "max"],
        description: "The thinking level of new sessions.",
        default: "pi's",
      },
      profile: { type: "string", placeholder: "NAME", description: "The profile of new sessions.", default: "none" },
      "on-detach": {
        type: "string",
        placeholder: "WHAT",
        choices: ["keep", "abort"],
        description: "What happens to runs when the editor ends and nobody else follows them.",
        default: "keep",
      },
      v2: { type: "boolean", description: "Lets editors have version 2 of the protocol, which is a draft." },
      login: { type: "boolean", description: "Logs in to a provider in this terminal, with pi." },
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints an error of this command on stderr as JSON." },
      help,
    },
    examples: ["pi-rpcd acp", "pi-rpcd acp --profile lean", "pi-rpcd acp --login"],
    exitCodes: [0, 1, 2],
  },
  rpc: {
    summary: "Speaks pi's RPC mode on stdin and stdout, for a session of the daemon.",
    description:
      "For scripts that speak to `pi --mode rpc`: the session outlives the script, and other clients see it. The words after this command's own options are pi's, without `--mode rpc`. Fails where the daemon cannot do what they ask for. A program that expects pi itself starts `pi-rpcd-pi` instead, which then becomes the real pi. The session and its run go on when stdin ends.",
    arguments: [
      {
        name: "ARGUMENT",
        many: true,
        passed: true,
        optional: true,
        description: "pi's options and their values.",
      },
    ],
    options: {
      explain: {
        type: "boolean",
        description: "Says whether the daemon would do what pi's options ask for, or why pi itself would.",
      },
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints an error of this command on stderr as JSON." },
      help,
    },
    examples: [
      "pi-rpcd rpc",
      "pi-rpcd rpc -- --model anthropic/claude-sonnet-4-5",
      "pi-rpcd rpc --explain -- --models a,b",
    ],
    exitCodes: [0, 1],
  },
  doctor: {
    summary: "Checks everything that pi-rpcd needs, and says how to fix each problem.",
    description:
      "Checks Node, the permissions of the state directory, the token, the daemon and its socket, the configuration and pi. With a temporary daemon and a model on loopback it also checks that the extension loads and that a prompt and a push reach the model and are answered. It changes nothing and leaves no files. Exits with 1 if it finds a problem.",
    arguments: [],
    options: {
      quick: { type: "boolean", description: "Does not start pi: skips the extension and the round trip." },
      pi,
      config,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: {ok, stateDir, findings: [...]}." },
      help,
    },
    examples: ["pi-rpcd doctor", "pi-rpcd doctor --pi ~/src/pi/dist/cli.js --json"],
    exitCodes: [0, 1, 2, 130],
  },
  token: {
    summary: "Shows the daemon's token; creates, lists and revokes tokens with fewer permissions.",
    description:
      "`show` prints the secret of the daemon's own token, which allows everything. `create` prints the secret of a new token, which is not shown again. `rotate` replaces the secret of the token NAME. Without NAME it replaces the secret of the daemon's own token, which programs read from daemon.json. The daemon refuses a rotated or revoked secret at once and closes its connections.",
    arguments: [
      {
        name: "ACTION",
        choices: ["show", "create", "list", "rotate", "revoke"],
        optional: true,
        description: "What to do. Default: `show`.",
      },
      { name: "NAME", optional: true, description: "The token's name." },
    ],
    options: {
      capabilities: {
        type: "string",
        placeholder: "LIST",
        description: "The capabilities of a new token, separated by commas: observe, prompt, bash, payload, admin.",
        default: "observe",
      },
      label: {
        type: "string",
        placeholder: "A=B,C",
        description: "Limits a new token to sessions with these labels.",
      },
      cwd: {
        type: "string",
        placeholder: "DIR",
        description: "Limits a new token to sessions in these directories, separated by commas.",
      },
      "no-start": noStart,
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document: the token, or {tokens: [...]}." },
      help,
    },
    examples: [
      "pi-rpcd token",
      "pi-rpcd token create ci --capabilities observe,prompt --label team=ci",
      "pi-rpcd token rotate",
    ],
    exitCodes: [0, 1, 2, 3, 130],
  },
  web: {
    summary: "Opens the daemon's sessions in your browser: the web console.",
    description:
      "The browser gets an address with a code that works once, by a private file. If no browser can be opened, or none has used the code after 5 seconds, the command prints the address: it can be opened on another machine by `ssh -L`. The page may then prompt and answer questions until you sign out, close it here, or the daemon ends, at most 12 hours after its last connection. The daemon listens for it on 127.0.0.1, at a port of its own.",
    arguments: [],
    options: {
      print: {
        type: "boolean",
        description: "Opens no browser: prints the address, which is valid for 10 minutes, and ends.",
      },
      close: { type: "boolean", description: "Closes the console: signs all browsers out, and shuts its port." },
      "read-only": { type: "boolean", description: "The page can only look." },
      payload: { type: "boolean", description: "The page can also read complete requests to the provider." },
      bash: { type: "boolean", description: "The page can also run shell commands and exports." },
      "web-port": { type: "string", placeholder: "N", description: "The console's port.", default: "a free port" },
      "no-start": noStart,
      "state-dir": stateDir,
      json: {
        type: "boolean",
        description:
          "Prints one JSON document, and opens no browser: {url, port, address, expiresAt}; with --close {closed}.",
      },
      help,
    },
    examples: ["pi-rpcd web", "pi-rpcd web --print --read-only", "pi-rpcd web --close"],
    exitCodes: [0, 1, 2, 3, 5, 130],
  },
  service: {
    summary: "Installs the daemon as a service: a systemd user unit, or launchd on macOS.",
    description:
      "`install` writes the files and enables the service. With systemd the first connection to the socket starts the daemon, and a watchdog restarts it when it hangs or fails. A service does not inherit your shell's environment: on a terminal the command asks which variables to keep, otherwise it keeps the usual ones (PATH, proxies, PI_…). It keeps logins only if you name them. It writes the variables to a file that only you can read. `status` exits with 1 if nothing is installed.",
    arguments: [{ name: "ACTION", choices: ["install", "uninstall", "status"], description: "What to do." }],
    options: {
      keep: {
        type: "string",
        placeholder: "LIST",
        description: "Names of the variables to keep, separated by commas; then the command does not ask.",
        default: "the command asks on a terminal, otherwise the usual ones",
      },
      platform: {
        type: "string",
        placeholder: "NAME",
        choices: ["systemd", "launchd"],
        description: "The service manager.",
        default: "that of the system",
      },
      "dry-run": {
        type: "boolean",
        description: "Prints the files without the values of variables, and changes nothing.",
      },
      "no-enable": {
        type: "boolean",
        description: "Writes or removes the files, and does not run the service manager.",
      },
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints one JSON document with the files and the commands." },
      help,
    },
    examples: [
      "pi-rpcd service install",
      "pi-rpcd service install --keep PATH,ANTHROPIC_API_KEY --dry-run",
      "pi-rpcd service uninstall",
    ],
    exitCodes: [0, 1, 2, 130],
  },
  logs: {
    summary: "Prints the end of the daemon's log, and follows it with -f.",
    description:
      "Also works after the daemon has ended. If the daemon was started with --log-file, name that file with --file.",
    arguments: [],
    options: {
      follow: {
        type: "boolean",
        short: "f",
        description: "Prints new lines until Ctrl-C, also after the log is rotated.",
      },
      lines: {
        type: "string",
        short: "n",
        placeholder: "N",
        description: "The number of lines, at most 100000.",
        default: "50",
      },
      file: {
        type: "string",
        placeholder: "FILE",
        description: "The log file.",
        default: "daemon.log in the state directory",
      },
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the lines unchanged: one JSON document each." },
      help,
    },
    examples: ["pi-rpcd logs", "pi-rpcd logs -f -n 10", "pi-rpcd logs --json -n 1000"],
    exitCodes: [0, 1, 2, 130],
  },
  docs: {
    summary: "Opens the reference of the protocol in the browser: every method, type, field, error and limit.",
    description:
      "Writes the page to a file that only you can read, and prints the path. Opens the browser only if the output is a terminal and the machine has a desktop. The page has no scripts and loads nothing. The command needs no daemon.",
    arguments: [],
    options: {
      "state-dir": unusedStateDir,
      json: { type: "boolean", description: "Prints one JSON document: {path, opened}." },
      help,
    },
    examples: ["pi-rpcd docs"],
    exitCodes: [0, 1, 2],
  },
  completion: {
    summary: "Prints a script that completes commands, options and sessions in your shell.",
    description:
      "For bash: `source <(pi-rpcd completion bash)` in ~/.bashrc. For zsh: the same in ~/.zshrc after compinit. For fish: `pi-rpcd completion fish > ~/.config/fish/completions/pi-rpcd.fish`.",
    arguments: [{ name: "SHELL", choices: ["bash", "zsh", "fish"], description: "The shell." }],
    options: {
      "state-dir": unusedStateDir,
      json: { type: "boolean", description: "Prints one JSON document: {shell, script}." },
      help,
    },
    examples: ["pi-rpcd completion bash"],
    exitCodes: [0, 2],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
