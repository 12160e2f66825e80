import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Command, type Context, commonOptions, UsageError } from "./command.ts";
import { commands } from "./commands.ts";
import { exitCodes } from "./exit-codes.ts";
import { createOutput, type Output } from "./output.ts";

/** Runs one command line and gives its exit code. Never rejects. */
export async function run(args: readonly string[]): Promise<number> {
  const output = createOutput();
  const json = args.includes("--json");
  try {
    return await dispatch(args, output);
  } catch (error) {
    const { report } = await import("./failure.ts");
    return report(error, json, output);
  }
}

async function dispatch(args: readonly string[], output: Output): Promise<number> {
  const [name, ...rest] = args;
  if (name === undefined || name === "help" || name === "--help" || name === "-h") return await help(rest[0], name, output);
  if (name === "--version" || name === "-v") {
    const { version } = await import("./version.ts");
    output.line(version());
    return exitCodes.done;
  }
  const command = await load(name);
  const { options, positionals } = parse(command, rest);
  if (options["help"] === true) return await help(name, "help", output);
  checkPositionals(command, positionals);
  return await command.run(await contextOf(command, options, positionals, output));
}

async function help(name: string | undefined, asked: string | undefined, output: Output): Promise<number> {
  const { helpOf, overview } = await import("./help.ts");
  output.write(name === undefined || name.startsWith("-") ? await overview() : helpOf(await load(name)));
  return asked === undefined ? exitCodes.usage : exitCodes.done;
}

async function load(name: string): Promise<Command> {
  const found = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (found !== undefined) return await found();
  throw new UsageError(`There is no command "${name}". There are: ${Object.keys(commands).join(", ")}. See pi-rpcd --help.`);
}

function parse(command: Command, args: readonly string[]): Pick<Context, "options" | "positionals"> {
  const rows = { ...command.options, ...commonOptions };
  const options = Object.fromEntries(
    Object.entries(rows).map(([name, { value, short }]) => [
      name,
      { type: value === undefined ? ("boolean" as const) : ("string" as const), ...(short === undefined ? {} : { short }) },
    ]),
  );
  try {
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals: true });
    return { options: values as Context["options"], positionals };
  } catch (cause) {
    const why = (cause as Error).message.split(". ")[0];
    throw new UsageError(`${why}. See pi-rpcd ${command.name} --help.`, { cause });
  }
}

function checkPositionals({ name, arguments: usage, positionals: { min, max } }: Command, given: readonly string[]): void {
  if (given.length < min) throw new UsageError(`Too few arguments: pi-rpcd ${name} ${usage}`);
  if (given.length > max) throw new UsageError(`Too many arguments: pi-rpcd ${[name, usage].join(" ").trim()}`);
}

async function contextOf(
  command: Command,
  options: Context["options"],
  positionals: readonly string[],
  output: Output,
): Promise<Context> {
  // npm runs its scripts in the package's folder, and says where the user was.
  const throughNpm = process.env["npm_lifecycle_event"] === "pi-rpcd" ? process.env["INIT_CWD"] : undefined;
  const directory = throughNpm ?? process.cwd();
  const given = options["state-dir"];
  const { stateDirectory } = await import("../client/discovery.ts");
  const stateDir = stateDirectory(typeof given === "string" ? resolve(directory, given) : undefined);
  return {
    options,
    positionals,
    json: options["json"] === true,
    output,
    stateDir,
    directory,
    connect: async () => {
      const { connectOrStart } = await import("./connect-or-start.ts");
      const mayStart = command.startsDaemon && options["no-start"] !== true;
      return await connectOrStart({ stateDir, mayStart, output });
    },
  };
}
