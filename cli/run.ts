import { HomeEmptyError } from "../client/local-errors.ts";
import { exitCodeOf, InterruptedError, reportOf } from "./errors.ts";
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
  let line: ParsedLine | undefined;
  try {
    line = parseLine(args);
    process.exitCode = await execute(line, { output, env, signal: interrupt });
  } catch (error) {
    output.error(error, line?.kind === "command" ? line.name : undefined);
    process.exitCode = exitCodeOf(error);
    if (line?.kind === "command") await adviseOn(error, line, { output, env });
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
      const { complete, runningSessions } = await import("./complete.ts");
      output.write(await complete(line.words, () => runningSessions(env, context.signal)));
      return exitCodes.done;
    }
    case "command": {
      // pi and the daemon would use paths relative to their working directories.
      if (env["HOME"] === "") throw new HomeEmptyError();
      const directory = callersDirectory(env);
      if (directory !== undefined) process.chdir(directory);
      const command = (await loaders[line.name]()) as Command<CommandName>;
      // The parser checked the values against the table from which their types derive.
      return command({ ...context, options: line.options, arguments: line.arguments } as Invocation<CommandName>);
    }
  }
}

/** Explains an error of pi that names `/login`: pi's advice is for its own terminal. */
async function adviseOn(
  error: unknown,
  { options }: Extract<ParsedLine, { readonly kind: "command" }>,
  context: Pick<Invocation<CommandName>, "output" | "env">,
): Promise<void> {
  const { message } = reportOf(error);
  if (!message.includes("/login")) return;
  const { explainLogin } = await import("./credentials.ts");
  const stateDir = options["state-dir"];
  await explainLogin(message, { ...context, stateDir: typeof stateDir === "string" ? stateDir : undefined });
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
