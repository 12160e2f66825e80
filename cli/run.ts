import { exitCodeOf, InterruptedError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import { commandHelp, helpDocument, overview } from "./help.ts";
import type { Command, CommandName, Invocation } from "./invocation.ts";
import { loaders } from "./loaders.ts";
import { callersDirectory } from "./npm.ts";
import { Output } from "./output.ts";
import { type ParsedLine, parseLine, wantsJson } from "./parse.ts";
import { packageVersion } from "./version.ts";

/** Handles that a command leaves open by mistake must not keep the process alive. */
const lingerMs = 3_000;

/** Runs a command line in this process, and sets its exit code. */
export async function run(args: readonly string[]): Promise<void> {
  const { env, stdout, stderr } = process;
  for (const stream of [stdout, stderr]) stream.on("error", onStreamError);
  const output = new Output({ stdout, stderr, env, json: wantsJson(args) });
  const interrupt = onSignals();
  try {
    process.exitCode = await execute(parseLine(args), { output, env, signal: interrupt });
  } catch (error) {
    output.error(error);
    process.exitCode = exitCodeOf(error);
  }
  setTimeout(() => process.exit(), lingerMs).unref();
}

async function execute(
  line: ParsedLine,
  context: Pick<Invocation<CommandName>, "output" | "env" | "signal">,
): Promise<number> {
  const { output, env } = context;
  switch (line.kind) {
    case "version":
      output.print(packageVersion());
      return exitCodes.done;
    case "help":
      if (line.json) output.document(helpDocument(line.command));
      else output.printText(line.command === undefined ? overview(packageVersion()) : commandHelp(line.command));
      return exitCodes.done;
    case "complete": {
      const { complete, sessionIds } = await import("./complete.ts");
      output.write(await complete(line.words, () => sessionIds(env, context.signal)));
      return exitCodes.done;
    }
    case "command": {
      const directory = callersDirectory(env);
      if (directory !== undefined) process.chdir(directory);
      const command = (await loaders[line.name]()) as Command<CommandName>;
      // The parser checked the values against the table from which their types derive.
      return command({ ...context, options: line.options, arguments: line.arguments } as Invocation<CommandName>);
    }
  }
}

/** Aborts at the first signal that asks the process to end; the second one ends the process at once. */
function onSignals(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      const interruption = new InterruptedError(name);
      if (controller.signal.aborted) process.exit(interruption.exitCode);
      controller.abort(interruption);
    });
  }
  return controller.signal;
}

/** The reader of the output has gone (`pi-rpcd ls | head -1`), so the command can end. */
function onStreamError(error: NodeJS.ErrnoException): void {
  if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
  process.exit();
}
