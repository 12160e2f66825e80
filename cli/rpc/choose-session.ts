import { isAbsolute } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../../client/client.ts";
import type { CallOptions } from "../../client/daemon-peer.ts";
import type { SessionHandle } from "../../client/session-handle.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Params } from "../../protocol/methods.ts";
import { defined } from "../../protocol/objects.ts";
import type { SessionInfo } from "../../protocol/session.ts";
import { startOptionsOf } from "../../protocol/session-options.ts";
import type { CreateOptions } from "./carried-options.ts";
import type { SessionChoice } from "./pi-arguments.ts";
import { namedFile, referredFile, type SessionFile } from "./session-files.ts";

/** A place in a session's log. Without an epoch: of a new one. */
export interface Place {
  after: number;
  epoch?: string;
}

/** The place before everything that a new session says. */
export const beginning = (): Place => ({ after: 0 });

/** The session of a front end. */
export interface Chosen {
  readonly session: SessionHandle;
  /** What was said since this place is the front end's too: its pi was started for it. Undefined: from now on. */
  readonly place: Place | undefined;
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

/** How long another front end may take to make the same session. */
const madeWithinMs = 10_000;
const lookEveryMs = 50;

/** Finds or makes the session that a command line names. Throws `NotCarriedError`, {@link Refused} and the daemon's errors. */
export async function chooseSession(client: Client, choice: SessionChoice, given: ChooseOptions): Promise<Chosen> {
  const { cwd, options, environment } = given;
  const create = async (more: Partial<Params<"session/create">> = {}): Promise<Chosen> => {
    const params = { ...options, ...more, cwd, environment, dialogPolicy, whenLeft: "close" };
    return { session: await client.createSession(params as Params<"session/create">), place: beginning() };
  };
  const where = { cwd, env: environment, sessionDir: options.sessionDir };
  const find = () => namedFile(choice, where);
  const open = (file: SessionFile) => take(client, file, given);
  const found = await find();
  if (found !== undefined) return await open(found);
  switch (choice.kind) {
    case "new":
      return await create(choice.sessionId === undefined ? {} : { sessionId: choice.sessionId });
    case "continue":
      return await create();
    case "session": {
      const { reference } = choice;
      if (!isAbsolute(reference)) throw new Refused(`No session found matching '${reference}'`);
      return await firstOf(() => create({ file: reference }), find, open);
    }
    case "sessionId": {
      const { id } = choice;
      const warning = `Warning: No project session found with id '${id}'; creating a new session with that id.`;
      const make = async (): Promise<Chosen> => ({ ...(await create({ sessionId: id })), warning });
      return await firstOf(make, find, open);
    }
    case "fork": {
      const { reference, sessionId } = choice;
      if (sessionId !== undefined && (await namedFile({ kind: "sessionId", id: sessionId }, where)) !== undefined)
        throw new Refused(`Session already exists with id '${sessionId}'`);
      const forkFrom = isAbsolute(reference) ? reference : referredFile(reference, where)?.file;
      if (forkFrom === undefined) throw new Refused(`No session found matching '${reference}'`);
      return await create({ forkFrom, ...(sessionId === undefined ? {} : { sessionId }) });
    }
  }
}

/** Makes a session, or takes the one that another front end makes at the same time. */
async function firstOf(
  make: () => Promise<Chosen>,
  find: () => Promise<SessionFile | undefined>,
  take: (file: SessionFile) => Promise<Chosen>,
): Promise<Chosen> {
  try {
    return await make();
  } catch (error) {
    if (!(error instanceof WireError) || error.kind !== "conflict") throw error;
    for (const deadline = Date.now() + madeWithinMs; Date.now() < deadline; await delay(lookEveryMs)) {
      const found = await find();
      if (found !== undefined) return await take(found);
    }
    throw new Refused(error.message);
  }
}

/** From the moment in which the daemon has the session, pi itself may not have it. */
async function take(client: Client, found: SessionFile, given: OpenOptions): Promise<Chosen> {
  try {
    return await openFile(client, found, given);
  } catch (error) {
    const { options: _, ...without } = given;
    const isOpen = await client
      .session(found.sessionId)
      .get()
      .then(() => true)
      .catch(() => false);
    // Otherwise pi itself says best why it does not start.
    if (!isOpen || !(error instanceof WireError)) throw error;
    const { exit, piStderr } = error.data as { readonly exit?: { readonly code: unknown }; readonly piStderr?: string };
    if (exit?.code === 1 && piStderr !== undefined) throw new Refused(piStderr.trimEnd());
    return { ...(await openFile(client, found, without)), notice: error.message };
  }
}

export interface OpenOptions {
  readonly options?: Omit<CreateOptions, "environment" | "whenLeft">;
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** The session whose pi may go on to it. */
  readonly from?: string;
  /** The pi of an open session that only this program shows is started again. */
  readonly viewer?: string | undefined;
}

/** Identifies this process's parent, usually an editor. Undefined if the parent is process 1: the editor may have ended. */
export const ownViewer = process.ppid === 1 ? undefined : `process:${process.ppid}`;

/** Opens a file with these options; an open session that cannot have them now stays as it is. Throws the daemon's errors. */
export async function openFile(
  client: Client,
  { file, sessionId }: SessionFile,
  { options = {}, environment, from, viewer }: OpenOptions,
  callOptions: CallOptions = {},
): Promise<Chosen> {
  const start = startOptionsOf(options);
  const former = await client
    .session(sessionId)
    .get()
    .catch(() => undefined);
  const params = {
    file,
    anywhere: true,
    dialogPolicy,
    whenLeft: "close" as const,
    ...defined({ environment, from, viewer }),
  };
  const open = async (more: Pick<Params<"session/open">, "options">): Promise<Chosen> => {
    const session = await client.openSession({ ...params, ...more }, callOptions);
    return { session, place: placeOf(former, session.info) };
  };
  if (Object.keys(start).length === 0) return await open({});
  try {
    return await open({ options: start });
  } catch (error) {
    if (!(error instanceof WireError) || error.kind !== "session_busy") throw error;
    return { ...(await open({})), notice: error.message };
  }
}

/** Where a session begins to say what belongs to its opening. Undefined: it has the pi that it had. */
function placeOf(former: SessionInfo | undefined, opened: SessionInfo | undefined): Place | undefined {
  if (former === undefined) return beginning();
  const { state, generation, cursor: after, epoch } = former;
  const hadPi = state !== "hibernated" && state !== "crashed";
  return hadPi && opened?.generation === generation ? undefined : { after, epoch };
}
