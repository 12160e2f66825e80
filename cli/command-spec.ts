import type { ExitCode } from "./exit-codes.ts";

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
  /** With `many`: from the first word that is not an option of the command, all words are passed to another program. */
  readonly passed?: boolean;
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
