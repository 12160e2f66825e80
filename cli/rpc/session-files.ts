import { readdirSync, realpathSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { hasNoMessage, sessionDirectory, sessionRoot } from "../../server/pi/session-file.ts";
import { readStoredHeader } from "../../server/pi/stored-header.ts";
import type { SessionChoice } from "./pi-arguments.ts";

/** A session file of pi. */
export interface SessionFile {
  readonly sessionId: string;
  /** Its real path. */
  readonly file: string;
  /** Unix milliseconds. */
  readonly updatedAt: number;
}

export interface Whereabouts {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Absolute. Default: pi's directory for the working directory. */
  readonly sessionDir?: string | undefined;
}

/** The file that a command line names, as pi finds it. Undefined: there is none, or it names no session that exists. */
export async function namedFile(choice: SessionChoice, where: Whereabouts): Promise<SessionFile | undefined> {
  const { cwd, env, sessionDir } = where;
  const own = (): readonly SessionFile[] => filesIn(sessionDir ?? sessionDirectory(cwd, env));
  switch (choice.kind) {
    case "continue":
      return await newestWithMessage(own());
    case "session":
      return referredFile(choice.reference, where);
    case "sessionId": {
      const files = own();
      const isIt = ({ sessionId }: SessionFile): boolean => sessionId === choice.id;
      return files.find(isIt) ?? files.map(withOwnId).find(isIt);
    }
    default:
      return undefined;
  }
}

/** The file at a path. Undefined: there is none. */
export function sessionFileAt(path: string): SessionFile | undefined {
  const found = fileAt(path);
  return found && withOwnId(found);
}

/** The file of a path, or of an id or its beginning: in the working directory's sessions, then in all. */
export function referredFile(reference: string, { cwd, env, sessionDir }: Whereabouts): SessionFile | undefined {
  if (isAbsolute(reference)) return sessionFileAt(reference);
  const own = filesIn(sessionDir ?? sessionDirectory(cwd, env));
  return matching(own, reference) ?? matching(sessionDir === undefined ? everywhere(env) : [], reference);
}

/** pi writes a session's file with its first answer; the daemon's have one from the start. */
async function newestWithMessage(files: readonly SessionFile[]): Promise<SessionFile | undefined> {
  for (const each of files.toSorted((one, other) => other.updatedAt - one.updatedAt))
    if (!(await hasNoMessage(each.file).catch(() => true))) return withOwnId(each);
  return undefined;
}

/** As pi takes it: exactly, or else by its beginning. The names of files are looked at first, because they are quick to read. */
function matching(files: readonly SessionFile[], reference: string): SessionFile | undefined {
  const among = (known: readonly SessionFile[]): SessionFile | undefined =>
    known.find(({ sessionId }) => sessionId === reference) ??
    known.find(({ sessionId }) => sessionId.startsWith(reference));
  return among(files) ?? among(files.map(withOwnId));
}

/** With the id of its header, which its name need not have. */
function withOwnId(found: SessionFile): SessionFile {
  try {
    return { ...found, sessionId: readStoredHeader(found.file).id };
  } catch {
    return found;
  }
}

function everywhere(env: NodeJS.ProcessEnv): readonly SessionFile[] {
  const root = sessionRoot(env);
  return [root, ...namesIn(root).map((name) => join(root, name))].flatMap(filesIn);
}

function filesIn(directory: string): readonly SessionFile[] {
  return namesIn(directory).flatMap((name) => fileAt(join(directory, name)) ?? []);
}

function fileAt(path: string): SessionFile | undefined {
  const sessionId = /(?:^|\/)(?:[^_/]*_)?([^/]+)\.jsonl$/.exec(path)?.[1];
  if (sessionId === undefined) return undefined;
  try {
    const file = realpathSync(path);
    const found = statSync(file);
    return found.isFile() ? { sessionId, file, updatedAt: found.mtimeMs } : undefined;
  } catch {
    return undefined;
  }
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
