import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stateDirectory } from "../../client/discovery.ts";
import { defined } from "../../protocol/objects.ts";
import { createValidator } from "../../protocol/validation.ts";
import { editorClient } from "../editor-client.ts";
import { CommandError } from "../errors.ts";
import type { CreateOptions } from "./carried-options.ts";
import { type Chosen, chooseSession, Refused } from "./choose-session.ts";
import { FrontEnd } from "./front-end.ts";
import { type Asked, piArguments, type SessionChoice } from "./pi-arguments.ts";
import { namedFile } from "./session-files.ts";

export interface DropInOptions {
  /** The words after pi's name. */
  readonly argv: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  /** The daemon's. Default: as for every client. */
  readonly stateDir?: string | undefined;
  /** Whether it fails where the daemon cannot carry what is asked, instead of becoming pi. */
  readonly isStrict: boolean;
}

const logName = "rpc.log";
/** A longer log begins again. */
const maxLogBytes = 256 * 1024;

/** Serves as pi's RPC mode through the daemon, or becomes pi. Resolves with the exit code. Throws {@link CommandError}. */
export async function dropIn(options: DropInOptions): Promise<number> {
  const asked = askedOf(options);
  if (asked.kind === "pi") return await fallBack(options, asked.reason, asked);
  if (asked.kind === "refused") {
    process.stderr.write(asked.stderr);
    return asked.exitCode;
  }
  try {
    return await serve(asked, options);
  } catch (error) {
    if (error instanceof Refused) {
      process.stderr.write(`${error.message}\n`);
      return 1;
    }
    if (!(error instanceof NotStarted)) throw error;
    return await fallBack(options, error.message, namedBy(asked));
  }
}

function namedBy({ session, options: { sessionDir } }: FrontEndAsked): Named {
  return { session, sessionDir };
}

/** Says what {@link dropIn} would do. */
export function explain(options: Omit<DropInOptions, "isStrict">): string {
  const asked = askedOf({ ...options, isStrict: true });
  if (asked.kind === "refused") return `pi would refuse to start: ${asked.stderr.trim()}`;
  if (asked.kind === "pi") return `pi itself would run: ${asked.reason}`;
  return "The daemon would be asked to carry this.";
}

function askedOf({ argv, env, isStrict }: DropInOptions): Asked {
  return piArguments(isStrict ? ["--mode", "rpc", ...argv] : argv, {
    cwd: process.cwd(),
    environment: env,
    files: { exists: existsSync, read: (path) => readFileSync(path, "utf8") },
    validator: createValidator(),
  });
}

/** Nothing was read or written yet. The message says why. */
class NotStarted extends Error {}

type FrontEndAsked = Extract<Asked, { kind: "frontEnd" }>;

async function serve(asked: FrontEndAsked, { env, stateDir: given }: DropInOptions): Promise<number> {
  const cwd = process.cwd();
  const stateDir = stateDirectory(given, env);
  const { client, chosen, created, saysDisposition } = await prepared(asked, { cwd, env, stateDir });
  for (const warning of [...asked.warnings, ...(chosen.warning === undefined ? [] : [chosen.warning])])
    process.stderr.write(`${warning}\n`);
  const { stdin, stdout, stderr } = process;
  const frontEnd = new FrontEnd({
    client,
    ...chosen,
    options: created,
    saysDisposition,
    input: stdin,
    output: stdout,
    errors: stderr,
  });
  for (const [name, code] of [
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const) {
    process.removeAllListeners(name);
    process.on(name, () => process.exit(code));
  }
  return await frontEnd.run();
}

interface Prepared {
  readonly client: Awaited<ReturnType<typeof editorClient>>;
  readonly chosen: Chosen;
  /** With which further sessions are created. */
  readonly created: CreateOptions;
  readonly saysDisposition: boolean;
}

/** Connects and finds the session. Throws {@link NotStarted} where pi itself should do the work. */
async function prepared(
  asked: FrontEndAsked,
  { cwd, env, stateDir }: { cwd: string; env: NodeJS.ProcessEnv; stateDir: string },
): Promise<Prepared> {
  let client: Prepared["client"] | undefined;
  try {
    client = await editorClient({ stateDir, env, name: "pi front end" });
    const info = client.info();
    info.catch(() => {});
    const { env: more, ...options } = asked.options;
    const environment = { ...defined(env), ...more };
    const chosen = await chooseSession(client, asked.session, { cwd, options, environment });
    const created: CreateOptions = { ...options, environment, whenLeft: "close" };
    return { client, chosen, created, saysDisposition: (await info).pi.capabilities.promptDisposition };
  } catch (error) {
    await client?.close();
    if (error instanceof Refused) throw error;
    // pi itself says best why it does not start.
    throw new NotStarted(wordsOf(error), { cause: error });
  }
}

/** Becomes pi, unless a daemon or a pi of its own writes the session's file. */
async function fallBack(
  { argv, env, isStrict }: DropInOptions,
  reason: string,
  { session, sessionDir }: Named = {},
): Promise<number> {
  if (isStrict) throw new CommandError("not_carried", reason);
  note(env, `became pi: ${reason}`);
  // Most starts need nothing of it, and start sooner without it.
  const { becomePi, countedHop, ownPi } = await import("./become-pi.ts");
  const { writerOf } = await import("../../server/pi/lease.ts");
  // Also for the search for pi, which may start wrappers.
  Object.assign(process.env, countedHop(env));
  const named = session && (await namedFile(session, { cwd: process.cwd(), env, sessionDir }));
  const writer = named && (await writerOf(named.file));
  if (named !== undefined && writer !== undefined) {
    process.stderr.write(
      `${named.file} is in use by the pi-rpcd with the state directory ${writer.stateDir} (process ${writer.holder.pid}).\n`,
    );
    return 1;
  }
  return await becomePi(await ownPi(env), argv, process.env);
}

/** The session that a command line names. */
interface Named {
  readonly session?: SessionChoice | undefined;
  readonly sessionDir?: string | undefined;
}

/** A line in the state directory's log. It is for people who wonder; a failure to write it must not disturb pi. */
function note(env: NodeJS.ProcessEnv, text: string): void {
  try {
    const directory = stateDirectory(undefined, env);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const file = join(directory, logName);
    const isFull = (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > maxLogBytes;
    const line = `${new Date().toISOString()} ${process.pid} ${text}\n`;
    writeFileSync(file, line, { flag: isFull ? "w" : "a", mode: 0o600 });
  } catch {
    // A read-only home, for example.
  }
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
