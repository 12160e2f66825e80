import { createHmac, randomBytes } from "node:crypto";
import { realpathSync } from "node:fs";
import { userInfo } from "node:os";
import { isAbsolute, resolve } from "node:path";
import { WireError } from "../../protocol/errors.ts";
import { agentDirectoryOf } from "./session-file.ts";
import { inherited } from "./spawn-options.ts";

/** Characters of a fingerprint: 128 bits. */
const fingerprintLength = 22;
/** Names and values of a client's environment, in bytes. */
const maxEnvironmentBytes = 1024 * 1024;

/** Variables of a terminal or of a login session. They differ between two windows that are otherwise equal. */
const ofWindow =
  /^(?:PWD|OLDPWD|SHLVL|_|TERM.*|COLORTERM|COLUMNS|LINES|WINDOWID|SSH_CONNECTION|SSH_CLIENT|SSH_TTY|TMUX.*|STY|XDG_SESSION_.*|INVOCATION_ID|JOURNAL_STREAM)$/s;

/** Keeps the variables in a private field, so that no log and no JSON can contain them. */
export class ChildEnvironment {
  /** Whose variables these are. */
  readonly from: "client" | "daemon";
  /** Environments with the same fingerprint count as equal. */
  readonly fingerprint: string;
  readonly #variables: NodeJS.ProcessEnv;

  constructor(from: "client" | "daemon", fingerprint: string, variables: NodeJS.ProcessEnv) {
    this.from = from;
    this.fingerprint = fingerprint;
    this.#variables = variables;
  }

  get variables(): NodeJS.ProcessEnv {
    return this.#variables;
  }
}

/** The environments of children: the daemon's own, and those of clients, which exist only in the daemon's memory. */
export class ChildEnvironments {
  /** The daemon's own. */
  readonly own: ChildEnvironment;
  readonly #secret = randomBytes(32);
  readonly #env: NodeJS.ProcessEnv;

  constructor(env: NodeJS.ProcessEnv) {
    this.#env = env;
    this.own = new ChildEnvironment("daemon", this.#fingerprint(inherited(env)), env);
  }

  /** Throws `invalid_params` above 1 MiB, and `forbidden` for another directory of pi's configuration. */
  ofClient(given: Readonly<Record<string, string>>): ChildEnvironment {
    requireSound(given);
    const { PI_CODING_AGENT_SESSION_DIR: _theirs, ...variables } = inherited(given);
    this.#requireOwnAgentDirectory(variables);
    // pi would put new sessions into a directory where the daemon does not accept them.
    const { PI_CODING_AGENT_SESSION_DIR: own } = this.#env;
    if (own !== undefined) variables["PI_CODING_AGENT_SESSION_DIR"] = own;
    return new ChildEnvironment("client", this.#fingerprint(variables), variables);
  }

  #fingerprint(variables: NodeJS.ProcessEnv): string {
    const counted = Object.entries(variables)
      .filter(([name]) => !ofWindow.test(name))
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
    const hash = createHmac("sha256", this.#secret).update(JSON.stringify(counted));
    return hash.digest("base64url").slice(0, fingerprintLength);
  }

  /** A session of one directory must not get the logins of another. */
  #requireOwnAgentDirectory(variables: NodeJS.ProcessEnv): void {
    const own = whole(agentDirectoryOf(this.#env));
    const theirs = agentDirectoryIn(variables);
    if (theirs !== undefined && whole(theirs) === own) return;
    const how = variables["PI_CODING_AGENT_DIR"] ? "PI_CODING_AGENT_DIR" : "HOME";
    throw new WireError(
      "forbidden",
      `The ${how} of the environment leads to another directory of pi's configuration than the daemon's, which is ${own}. Use a daemon for that directory: start one with another PI_RPCD_STATE_DIR.`,
      { agentDirectory: own, reason: "other_agent_directory" },
    );
  }
}

/** The schema cannot limit the total, and its patterns do not cover names with line ends. The values are not echoed. */
function requireSound(given: Readonly<Record<string, string>>): void {
  let bytes = 0;
  for (const [name, value] of Object.entries(given)) {
    if (!/^[^=\0]+$/.test(name) || typeof value !== "string" || value.includes("\0"))
      throw invalid("has a name or a value that no environment can have");
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  }
  if (bytes > maxEnvironmentBytes) throw invalid(`has more than ${maxEnvironmentBytes} bytes`);
}

function invalid(message: string): WireError {
  return new WireError("invalid_params", `The environment ${message}.`, {
    findings: [{ path: "/environment", message }],
  });
}

/** The directory that pi would use. Undefined: it depends on pi's working directory, or the user has no home. */
function agentDirectoryIn(variables: NodeJS.ProcessEnv): string | undefined {
  const { PI_CODING_AGENT_DIR: chosen, HOME: home = homeOfUser() } = variables;
  const isRelative = chosen && !isAbsolute(chosen) && chosen !== "~" && !chosen.startsWith("~/");
  const needsHome = !chosen || !isAbsolute(chosen);
  if (isRelative || (needsHome && (home === undefined || !isAbsolute(home)))) return undefined;
  return agentDirectoryOf({ ...(chosen ? { PI_CODING_AGENT_DIR: chosen } : {}), HOME: home });
}

/** Node's home directory in a process without HOME. */
function homeOfUser(): string | undefined {
  try {
    return userInfo().homedir;
  } catch {
    return undefined;
  }
}

function whole(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
