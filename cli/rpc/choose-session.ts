import { existsSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import type { Client } from "../../client/client.ts";
import type { SessionHandle } from "../../client/session-handle.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Params } from "../../protocol/methods.ts";
import { type CreateOptions, NotCarriedError } from "./carried-options.ts";
import type { SessionChoice } from "./pi-arguments.ts";

/** The session of a front end. */
export interface Chosen {
  readonly session: SessionHandle;
  /** Whether it was made for this front end. */
  readonly isNew: boolean;
  /** What to say to the front end's user. */
  readonly notice?: string;
  /** For stderr, as pi says it. */
  readonly warning?: string;
}

export interface ChooseOptions {
  readonly cwd: string;
  readonly options: CreateOptions;
  readonly environment: Readonly<Record<string, string>>;
}

/** pi would refuse to start, with these words on stderr. */
export class Refused extends Error {}

/** The questions of extensions wait for a person, as in pi. */
export const dialogPolicy = { kind: "wait" } as const;

interface Known {
  readonly sessionId: string;
  readonly file: string;
  /** Unix milliseconds. */
  readonly updatedAt: number;
  /** Whether it is a session of the daemon. */
  readonly isManaged: boolean;
}

const pageLength = 500;
/** Options that a session has without a start of its pi. */
const settable: ReadonlySet<string> = new Set(["sessionDir", "model", "provider", "thinking", "name"]);

/** Finds or makes the session that a command line names. Throws `NotCarriedError`, {@link Refused} and the daemon's errors. */
export async function chooseSession(client: Client, choice: SessionChoice, given: ChooseOptions): Promise<Chosen> {
  const { cwd, options, environment } = given;
  const { sessionDir } = options;
  const create = async (more: Partial<Params<"session/create">> = {}): Promise<Chosen> => {
    const params = {
      ...options,
      ...more,
      cwd,
      environment,
      dialogPolicy,
      whenLeft: "close",
    } as Params<"session/create">;
    return { session: await client.createSession(params), isNew: true };
  };
  const inDirectory = async (): Promise<readonly Known[]> =>
    sessionDir === undefined ? await sessionsIn(client, cwd) : await filesIn(client, sessionDir);
  const everywhere = async (): Promise<readonly Known[]> => (sessionDir === undefined ? await sessionsIn(client) : []);
  switch (choice.kind) {
    case "new":
      return await create();
    case "continue": {
      const newest = newestOf(await inDirectory());
      return newest === undefined ? await create() : await open(client, newest, given);
    }
    case "session": {
      const { reference } = choice;
      if (isAbsolute(reference)) return await openOrMake(client, reference, { given, create });
      const found = matching(await inDirectory(), reference) ?? matching(await everywhere(), reference);
      if (found === undefined) throw new Refused(`No session found matching '${reference}'`);
      return await open(client, found, given);
    }
    case "sessionId": {
      const { id } = choice;
      const find = async () => (await inDirectory()).find(({ sessionId }) => sessionId === id);
      const found = await find();
      if (found !== undefined) return await open(client, found, given);
      const warning = `Warning: No project session found with id '${id}'; creating a new session with that id.`;
      try {
        return { ...(await create({ sessionId: id })), warning };
      } catch (error) {
        const other = isConflict(error) ? await find() : undefined;
        if (other === undefined) throw error;
        return await open(client, other, given);
      }
    }
    case "fork":
      throw new NotCarriedError("--fork has no counterpart in the daemon.");
  }
}

/** pi makes a session at a path that does not exist. */
async function openOrMake(
  client: Client,
  file: string,
  { given, create }: { given: ChooseOptions; create: (more: Partial<Params<"session/create">>) => Promise<Chosen> },
): Promise<Chosen> {
  if (!existsSync(file)) {
    try {
      return await create({ file });
    } catch (error) {
      if (!isConflict(error)) throw error;
    }
  }
  const managed = (await sessionsIn(client)).find((each) => each.file === file && each.isManaged);
  return await open(client, { file, isManaged: managed !== undefined }, given);
}

async function open(
  client: Client,
  { file, isManaged }: Pick<Known, "file" | "isManaged">,
  { options, environment }: ChooseOptions,
): Promise<Chosen> {
  const atStart = Object.keys(options).filter((name) => !settable.has(name));
  if (!isManaged && atStart.length > 0)
    throw new NotCarriedError(`A stored session is opened without ${atStart.join(", ")}.`);
  const session = await client.openSession({ file, environment, dialogPolicy });
  const { model, thinking, name } = options;
  const wanted = [...atStart, ...Object.keys(options).filter((each) => settable.has(each) && each !== "sessionDir")];
  if (isManaged) return { session, isNew: false, ...(wanted.length > 0 && { notice: unchanged(wanted) }) };
  const place = model?.indexOf("/") ?? -1;
  if (model !== undefined && place === -1)
    throw new NotCarriedError("A stored session is opened without a pattern of a model.");
  if (model !== undefined) await session.setModel(model.slice(0, place), model.slice(place + 1));
  if (thinking !== undefined) await session.command({ type: "set_thinking_level", level: thinking });
  if (name !== undefined) await session.command({ type: "set_session_name", name });
  return { session, isNew: false };
}

function unchanged(names: readonly string[]): string {
  return `The session was open already and stays as it is; the command line asks for another: ${names.join(", ")}.`;
}

function isConflict(error: unknown): boolean {
  return error instanceof WireError && error.kind === "conflict";
}

function newestOf(sessions: readonly Known[]): Known | undefined {
  return sessions.reduce<Known | undefined>(
    (newest, each) => (newest === undefined || each.updatedAt > newest.updatedAt ? each : newest),
    undefined,
  );
}

/** The session files of a directory that pi does not look into by itself. */
async function filesIn(client: Client, directory: string): Promise<readonly Known[]> {
  const names = await readdir(directory).catch(() => [] as string[]);
  const found = names.flatMap((name) => {
    const sessionId = /_([^_]+)\.jsonl$/.exec(name)?.[1];
    return sessionId === undefined ? [] : [{ sessionId, file: join(directory, name) }];
  });
  const dated = await Promise.all(
    found.map(async (each) => ({ ...each, updatedAt: (await stat(each.file).catch(() => undefined))?.mtimeMs })),
  );
  const managed = new Set((await sessionsIn(client)).flatMap(({ file, isManaged }) => (isManaged ? [file] : [])));
  return dated.flatMap(({ updatedAt, ...each }) =>
    updatedAt === undefined ? [] : [{ ...each, updatedAt, isManaged: managed.has(each.file) }],
  );
}

/** As pi takes it: exactly, or else by its beginning. */
function matching(sessions: readonly Known[], reference: string): Known | undefined {
  return (
    sessions.find(({ sessionId }) => sessionId === reference) ??
    sessions.find(({ sessionId }) => sessionId.startsWith(reference))
  );
}

/** The daemon's and pi's own sessions, of a directory or of all. */
async function sessionsIn(client: Client, cwd?: string): Promise<readonly Known[]> {
  const only = cwd === undefined ? {} : { cwd };
  const found: Known[] = [];
  for (let after: string | undefined, isLast = false; !isLast; isLast = after === undefined) {
    const page = await client.call("session/list", { ...only, ...(after === undefined ? {} : { after }) });
    found.push(...page.sessions.map((each) => ({ ...each, isManaged: true })));
    after = page.next;
  }
  for (let storedAfter: string | undefined, isLast = false; !isLast; isLast = storedAfter === undefined) {
    const place = storedAfter === undefined ? {} : { storedAfter };
    const page = await client.call("session/list", {
      ...only,
      ...place,
      limit: 1,
      stored: true,
      storedLimit: pageLength,
    });
    found.push(...(page.stored?.sessions ?? []).map((each) => ({ ...each, isManaged: false })));
    storedAfter = page.stored?.next;
  }
  return found;
}
