import type { ArgumentSpec, OptionSpec } from "./command-spec.ts";

// Options and arguments of several commands.

export const stateDir = {
  type: "string",
  placeholder: "DIR",
  description: "The daemon's state directory.",
  default: "PI_RPCD_STATE_DIR, otherwise $XDG_STATE_HOME/pi-rpcd, otherwise ~/.local/state/pi-rpcd",
} as const satisfies OptionSpec;

export const unusedStateDir = {
  ...stateDir,
  description: "Has no effect: this command does not use your state directory.",
  default: "none",
} as const satisfies OptionSpec;

export const help = { type: "boolean", short: "h", description: "Shows this help." } as const satisfies OptionSpec;

export const noStart = {
  type: "boolean",
  description: "Exits with 3 if no daemon runs, instead of starting one.",
} as const satisfies OptionSpec;

export const pi = {
  type: "string",
  placeholder: "PATH",
  description: "The pi to use: its cli.js or executable.",
  default: "PI_RPCD_PI, otherwise pi on PATH, otherwise the bundled one",
} as const satisfies OptionSpec;

export const session = {
  name: "SESSION",
  description:
    "A session: at least 4 characters of the end or start of its id, its name, a unique part of its name or of its directory's name, or `last` for the newest.",
} as const satisfies ArgumentSpec;

export const config = {
  type: "string",
  placeholder: "FILE",
  description: "The configuration file: see `pi-rpcd config`.",
  default: "$XDG_CONFIG_HOME/pi-rpcd/config.json or ~/.config/pi-rpcd/config.json, if it exists",
} as const satisfies OptionSpec;
