import type { commands } from "./commands.ts";
import type { ExitCode } from "./exit-codes.ts";
import type { Output } from "./output.ts";

export interface OptionSpec {
  readonly type: "string" | "boolean";
  readonly description: string;
  /** The name of the value in the help. */
  readonly placeholder?: string;
  /** The default, as text. */
  readonly default?: string;
  /** The allowed values. */
  readonly choices?: readonly string[];
  readonly short?: string;
}

export interface ArgumentSpec {
  readonly name: string;
  readonly description: string;
  readonly optional?: boolean;
  /** The allowed words. */
  readonly choices?: readonly string[];
  /** Takes all remaining words. */
  readonly many?: boolean;
}

/** One row of the table of commands. */
export interface CommandSpec {
  readonly summary: string;
  /** Details beyond the summary; one paragraph. */
  readonly description?: string;
  readonly arguments: readonly ArgumentSpec[];
  readonly options: Readonly<Record<string, OptionSpec>>;
  readonly examples: readonly string[];
  readonly exitCodes: readonly ExitCode[];
}

export type CommandName = keyof typeof commands;

type OptionValue<O extends OptionSpec> = O extends { readonly type: "boolean" }
  ? boolean
  : O extends { readonly choices: readonly (infer C)[] }
    ? C
    : string;

export type OptionValues<N extends CommandName> = {
  readonly [K in keyof (typeof commands)[N]["options"]]?: (typeof commands)[N]["options"][K] extends OptionSpec
    ? OptionValue<(typeof commands)[N]["options"][K]>
    : never;
};

/** One call of a command. */
export interface Invocation<N extends CommandName> {
  readonly options: OptionValues<N>;
  readonly arguments: readonly string[];
  readonly output: Output;
  readonly env: NodeJS.ProcessEnv;
  /** Aborted with an `InterruptedError` by the first SIGINT, SIGTERM or SIGHUP. */
  readonly signal: AbortSignal;
}

/** Resolves with the exit code. */
export type Command<N extends CommandName> = (invocation: Invocation<N>) => Promise<number>;
