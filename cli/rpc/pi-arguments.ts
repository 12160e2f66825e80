import { CHILD_MARKER_ENV } from "../../protocol/link.ts";
import type { Validator } from "../../protocol/validator.ts";
import {
  absolutePath,
  type CreateOptions,
  carriedOptions,
  NotCarriedError,
  type Surroundings,
  sessionDirectory,
} from "./carried-options.ts";
import { type Diagnostic, type PiFlags, readPiFlags, type TestedPi, testedPis } from "./pi-flags.ts";

/** The session that a command line names. A reference is an absolute path, or an id or its beginning. */
export type SessionChoice =
  | { readonly kind: "new"; readonly sessionId?: string }
  | { readonly kind: "session"; readonly reference: string }
  | { readonly kind: "sessionId"; readonly id: string }
  | { readonly kind: "continue" }
  | { readonly kind: "fork"; readonly reference: string; readonly sessionId?: string };

/** What a command line of pi asks for. */
export type Asked =
  | {
      /** Only pi itself can do it. */
      readonly kind: "pi";
      readonly reason: string;
      /** The session that pi would write to. Absent if the command line names none. */
      readonly session?: SessionChoice;
      readonly sessionDir?: string;
    }
  | { readonly kind: "refused"; readonly stderr: string; readonly exitCode: number }
  | {
      readonly kind: "frontEnd";
      readonly options: CreateOptions;
      readonly session: SessionChoice;
      /** Lines that pi writes to stderr, without their ends. */
      readonly warnings: readonly string[];
    };

export interface PiArgumentsOptions extends Surroundings {
  readonly validator: Pick<Validator, "params">;
  /**
   * The version of the pi that would run. Default: not known. Then, and if the version was not tested, pi itself refuses
   * what the tested versions refuse, and does what they read differently.
   */
  readonly version?: string | undefined;
}

const subcommands = ["install", "remove", "uninstall", "update", "list", "config", "auth", "mcp"];

/** Says what the words after pi's name ask for, by the rules of pi. */
export function piArguments(argv: readonly string[], options: PiArgumentsOptions): Asked {
  const tested = testedPis.find((pi) => pi === options.version);
  if (tested !== undefined) return askedOf(argv, tested, options);
  const readings = testedPis.map((pi) => askedOf(argv, pi, options));
  // The unit test checks that readings without a reason for pi are equal.
  return readings.findLast(({ kind }) => kind === "pi") ?? (readings[0] as Asked);
}

function askedOf(argv: readonly string[], pi: TestedPi, options: PiArgumentsOptions): Asked {
  if (subcommands.includes(argv[0] ?? "")) return { kind: "pi", reason: `"${argv[0]}" is a command of pi.` };
  const flags = readPiFlags(argv, pi);
  const reason = reasonForPi(flags, pi, options);
  if (reason !== undefined) return onlyPi(reason, flags, options);
  const refusal = refusalOf(flags);
  if (refusal !== undefined) {
    if (options.version === pi) return { kind: "refused", stderr: `${refusal.join("\n")}\n`, exitCode: 1 };
    return onlyPi(`The tested versions of pi refuse this: ${refusal.join(" ")}`, flags, options);
  }
  try {
    const carried = carriedOptions(flags, options, options.validator);
    return {
      kind: "frontEnd",
      // pi looks for this word everywhere, even among values.
      options: argv.includes("--offline") ? { ...carried, env: { PI_OFFLINE: "1" } } : carried,
      session: sessionOf(flags, options),
      warnings: flags.diagnostics.map(lineOf),
    };
  } catch (error) {
    if (!(error instanceof NotCarriedError)) throw error;
    return onlyPi(error.message, flags, options);
  }
}

function reasonForPi(flags: PiFlags, pi: TestedPi, { environment }: Surroundings): string | undefined {
  if (environment[CHILD_MARKER_ENV] !== undefined) return "A pi of the daemon started this one.";
  if (environment["PI_RPCD_DIRECT"] === "1") return "PI_RPCD_DIRECT is 1.";
  if (flags.mode !== "rpc") return "The command line has no --mode rpc.";
  if (flags.help) return "--help prints pi's own help.";
  if (flags.version) return "--version prints pi's own version.";
  if (flags.listModels !== undefined) return "--list-models prints pi's own models.";
  if (flags.export) return "--export is done by pi itself.";
  if (flags.resume) return "--resume needs a terminal.";
  if (flags.provider && !flags.model && pi !== "0.87.1") return "pi refuses --provider without --model.";
  // pi opens the session before it refuses the name.
  if (flags.name?.trim() === "" && namesSession(flags)) return "pi refuses an empty --name.";
  return undefined;
}

/** The session is worth knowing: another process may write to its file. */
function onlyPi(reason: string, flags: PiFlags, surroundings: Surroundings): Asked {
  try {
    const session = sessionOf(flags, surroundings);
    const sessionDir = sessionDirectory(flags, surroundings);
    return { kind: "pi", reason, session, ...(sessionDir !== undefined && { sessionDir }) };
  } catch (error) {
    if (!(error instanceof NotCarriedError)) throw error;
    return { kind: "pi", reason };
  }
}

/** The lines with which pi ends before it opens a session. Undefined: it goes on. */
function refusalOf(flags: PiFlags): readonly string[] | undefined {
  const lines = flags.diagnostics.map(lineOf);
  if (flags.diagnostics.some(({ type }) => type === "error")) return lines;
  const problem = flags.fileArgs.length > 0 ? "@file arguments are not supported in RPC mode" : sessionProblem(flags);
  return problem === undefined ? undefined : [...lines, `Error: ${problem}`];
}

function sessionProblem(flags: PiFlags): string | undefined {
  const { fork, sessionId } = flags;
  const others = [...(flags.session ? ["--session"] : []), ...(flags.continue ? ["--continue"] : [])];
  const besidesFork = [...others, ...(flags.noSession ? ["--no-session"] : [])];
  if (fork && besidesFork.length > 0) return `--fork cannot be combined with ${besidesFork.join(", ")}`;
  if (sessionId !== undefined && others.length > 0) return `--session-id cannot be combined with ${others.join(", ")}`;
  if (sessionId !== undefined && !/^[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/.test(sessionId)) return invalidId;
  return flags.name?.trim() === "" ? "--name requires a non-empty value" : undefined;
}

const invalidId =
  "Session id must be non-empty, contain only alphanumeric characters, '-', '_', and '.', and start and end with an alphanumeric character";

function namesSession({ fork, session, sessionId, continue: isContinued }: PiFlags): boolean {
  return Boolean(fork || session || sessionId || isContinued);
}

/** pi's order. Throws {@link NotCarriedError}. */
function sessionOf(flags: PiFlags, surroundings: Surroundings): SessionChoice {
  const { fork, session, sessionId } = flags;
  if (flags.noSession) return { kind: "new", ...(sessionId && { sessionId }) };
  if (fork) return { kind: "fork", reference: referenceOf(fork, surroundings), ...(sessionId && { sessionId }) };
  if (session) return { kind: "session", reference: referenceOf(session, surroundings) };
  if (flags.continue) return { kind: "continue" };
  return sessionId ? { kind: "sessionId", id: sessionId } : { kind: "new" };
}

function referenceOf(word: string, surroundings: Surroundings): string {
  const isPath = word.includes("/") || word.includes("\\") || word.endsWith(".jsonl");
  return isPath ? absolutePath(word, surroundings) : word;
}

function lineOf({ type, message }: Diagnostic): string {
  return `${type === "error" ? "Error" : "Warning"}: ${message}`;
}
