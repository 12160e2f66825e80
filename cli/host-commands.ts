import type { CommandSpec } from "./command-spec.ts";
import { config, help, pi, stateDir } from "./common-options.ts";

/** The commands about this machine. */
export const hostCommands = {
  doctor: {
    summary: "Checks everything that pi-rpcd needs, and says what to do where something is wrong.",
    description:
      "Node, the state directory's rights, the token, the daemon and its socket, the configuration, pi, and with a daemon of its own and a model on loopback whether the extension loads and a prompt and a push come to the model and back. It changes nothing and leaves nothing. Exits with 1 if something is to be mended.",
    arguments: [],
    options: {
      quick: { type: "boolean", description: "Starts no pi: without the extension and the round trip." },
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
    summary: "Shows the daemon's token; makes, lists and ends named ones with fewer rights.",
    description:
      "`show` prints the secret of the daemon's own token, which allows everything. `create` prints a new token's secret, this once. `rotate` gives one another secret, without NAME the daemon's own; programs that read daemon.json find it there. A token that is rotated or revoked is refused at once, and its connections are closed.",
    arguments: [
      {
        name: "ACTION",
        choices: ["show", "create", "list", "rotate", "revoke"],
        optional: true,
        description: "What to do, at first `show`.",
      },
      { name: "NAME", optional: true, description: "The token's name." },
    ],
    options: {
      capabilities: {
        type: "string",
        placeholder: "LIST",
        description: "What a new token allows: observe, prompt, bash, payload, admin, with commas between them.",
        default: "observe",
      },
      label: {
        type: "string",
        placeholder: "A=B,C",
        description: "A new token is for sessions with these labels only.",
      },
      cwd: {
        type: "string",
        placeholder: "DIR",
        description: "A new token is for sessions in these directories only, with commas between them.",
      },
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
  service: {
    summary: "Has the system start the daemon: by a systemd user unit, or launchd on a Mac.",
    description:
      "`install` writes the files and enables them. With systemd the first connection to the socket starts the daemon, which is watched and started again when it hangs or fails. A service has nothing of your shell's environment: on a terminal it is asked which variables to keep, else the usual ones are (PATH, proxies, PI_…); logins are kept only by name. They are written to a file that is yours alone. `status` exits with 1 where nothing is installed.",
    arguments: [{ name: "ACTION", choices: ["install", "uninstall", "status"], description: "What to do." }],
    options: {
      keep: {
        type: "string",
        placeholder: "LIST",
        description: "Names of the variables to keep, with commas between them; nothing is asked then.",
        default: "asked on a terminal, else the usual ones",
      },
      platform: {
        type: "string",
        placeholder: "NAME",
        choices: ["systemd", "launchd"],
        description: "Whose files.",
        default: "the system's own",
      },
      "dry-run": {
        type: "boolean",
        description: "Prints the files, without what variables hold, and changes nothing.",
      },
      "no-enable": { type: "boolean", description: "Writes or removes the files, and runs no command of the system." },
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
    summary: "Prints the end of the daemon's log, and with -f what is added to it.",
    description:
      "Also of a daemon that has ended. One that was started with --log-file writes elsewhere: name that file.",
    arguments: [],
    options: {
      follow: { type: "boolean", short: "f", description: "Goes on until Ctrl-C, also over the log's rotation." },
      lines: {
        type: "string",
        short: "n",
        placeholder: "N",
        description: "How many lines, at most 100000.",
        default: "50",
      },
      file: {
        type: "string",
        placeholder: "FILE",
        description: "The log.",
        default: "daemon.log in the state directory",
      },
      "state-dir": stateDir,
      json: { type: "boolean", description: "Prints the lines as they are: JSON, one document each." },
      help,
    },
    examples: ["pi-rpcd logs", "pi-rpcd logs -f -n 10", "pi-rpcd logs --json -n 1000"],
    exitCodes: [0, 1, 2, 130],
  },
  completion: {
    summary: "Prints a script that completes commands, options and sessions in your shell.",
    description:
      "For bash: `source <(pi-rpcd completion bash)` in ~/.bashrc. For zsh: the same in ~/.zshrc behind compinit. For fish: `pi-rpcd completion fish > ~/.config/fish/completions/pi-rpcd.fish`.",
    arguments: [{ name: "SHELL", choices: ["bash", "zsh", "fish"], description: "Whose script." }],
    options: {
      "state-dir": { ...stateDir, description: "Has no effect here.", default: "none" },
      json: { type: "boolean", description: "Prints one JSON document: {shell, script}." },
      help,
    },
    examples: ["pi-rpcd completion bash"],
    exitCodes: [0, 2],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
