import type { Invocation } from "./command-spec.ts";
import { commands } from "./commands.ts";
import { bashScript } from "./completion/bash.ts";
import { fishScript } from "./completion/fish.ts";
import type { Commands } from "./completion/words.ts";
import { zshScript } from "./completion/zsh.ts";
import { exitCodes } from "./exit-codes.ts";

const scripts: Readonly<Record<string, (table: Commands) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
};

/** Prints the completion script of a shell, generated from the table of commands. */
export async function completion({ output, arguments: [shell = ""] }: Invocation<"completion">): Promise<number> {
  const script = scripts[shell]?.(commands) ?? "";
  if (output.json) output.document({ shell, script });
  else output.write(script);
  return exitCodes.done;
}
