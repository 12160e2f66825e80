import type { OptionSpec } from "./command-spec.ts";
import type { commands } from "./commands.ts";
import type { Output } from "./output.ts";

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
