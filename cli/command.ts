import type { Client } from "../client/index.ts";
import type { Output } from "./output.ts";

/** One option of a command. Without `value` it is a switch. */
export interface OptionRow {
  /** Name of its value in the help text. */
  readonly value?: string;
  readonly short?: string;
  readonly summary: string;
  /** What holds without it, for the help text. */
  readonly fallback?: string;
}

/** What a command gets. */
export interface Context {
  readonly options: Readonly<Record<string, string | boolean | undefined>>;
  readonly positionals: readonly string[];
  readonly json: boolean;
  readonly output: Output;
  /** Absolute. */
  readonly stateDir: string;
  /** What relative paths are relative to: where the user is, also when npm started the command. */
  readonly directory: string;
  /** A client of the running daemon. Starts one if the command may, unless `--no-start`. */
  connect(): Promise<Client>;
}

export interface Command {
  readonly name: string;
  readonly summary: string;
  /** The arguments behind the name, for the help text. */
  readonly arguments: string;
  readonly positionals: { readonly min: number; readonly max: number };
  readonly options: Readonly<Record<string, OptionRow>>;
  /** Whether it starts a daemon when none runs. */
  readonly startsDaemon: boolean;
  readonly examples: readonly string[];
  /** Resolves with the exit code. */
  run(context: Context): Promise<number>;
}

/** Options that every command takes. */
export const commonOptions: Readonly<Record<string, OptionRow>> = {
  "state-dir": {
    value: "DIR",
    summary: "the daemon's directory",
    fallback: "PI_RPCD_STATE_DIR, else $XDG_STATE_HOME/pi-rpcd, else ~/.local/state/pi-rpcd",
  },
  json: { summary: "print JSON: one document, or one line for each step" },
  help: { short: "h", summary: "show this help" },
};

/** The further option of commands that start a daemon when none runs. */
export const noStart: Readonly<Record<string, OptionRow>> = {
  "no-start": { summary: "fail if no daemon runs, rather than start one" },
};

/** The user gave wrong arguments. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The text of an option that takes a value. */
export function text(options: Context["options"], name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}

/** An option that must be one of a few words. */
export function oneOf<T extends string>(options: Context["options"], name: string, allowed: readonly T[]): T | undefined {
  const value = text(options, name);
  if (value === undefined || allowed.includes(value as T)) return value as T | undefined;
  throw new UsageError(`--${name} takes one of: ${allowed.join(", ")}.`);
}

/** An option that is a whole number within bounds. */
export function wholeNumber(options: Context["options"], name: string, bounds: { readonly min: number; readonly max: number }): number | undefined {
  const value = text(options, name);
  if (value === undefined) return undefined;
  const number = Number(value);
  if (/^\d+$/.test(value) && number >= bounds.min && number <= bounds.max) return number;
  throw new UsageError(`--${name} takes a whole number from ${bounds.min} to ${bounds.max}.`);
}
