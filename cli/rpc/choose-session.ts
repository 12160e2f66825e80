import { isAbsolute } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "../../client/client.ts";
import type { SessionHandle } from "../../client/session-handle.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Params } from "../../protocol/methods.ts";
import { type CreateOptions, NotCarriedError } from "./carried-options.ts";
import type { SessionChoice } from "./pi-arguments.ts";
import { namedFile, type SessionFile } from "./session-files.ts";

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

/** Options that a session has without a start of its pi. */
const settable: ReadonlySet<string> = new Set(["model", "provider", "thinking", "name", "approve"]);
/** How long another front end may take to make the same session. */
const madeWithinMs = 10_000;
const lookEveryMs = 50;

/** Finds or makes the session that a command line names. Throws `NotCarriedError`, {@link Refused} and the daemon's errors. */
export async function chooseSession(client: Client, choice: SessionChoice, given: ChooseOptions): Promise<Chosen> {
  const { cwd, options, environment } = given;
  const create = async (more: Partial<Params<"session/create">> = {}): Promise<Chosen> => {
    const params = { ...options, ...more, cwd, environment, dialogPolicy, whenLeft: "close" };
    return { session: await client.createSession(params as Params<"session/create">), isNew: true };
  };
  const find = () => namedFile(choice, { cwd, env: environment, sessionDir: options.sessionDir });
  const take = (file: SessionFile) => open(client, file, given);
  const found = await find();
  if (found !== undefined) return await take(found);
  switch (choice.kind) {
    case "new":
    case "continue":
      return await create();
    case "session": {
      const { reference } = choice;
      if (!isAbsolute(reference)) throw new Refused(`No session found matching '${reference}'`);
      return await firstOf(() => create({ file: reference }), find, take);
    }
    case "sessionId": {
      const { id } = choice;
      const warning = `Warning: No project session found with id '${id}'; creating a new session with that id.`;
      const make = async (): Promise<Chosen> => ({ ...(await create({ sessionId: id })), warning });
      return await firstOf(make, find, take);
    }
    default:
      throw new NotCarriedError(`--${choice.kind} has no counterpart in the daemon.`);
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
async function open(
  client: Client,
  { sessionId, file }: SessionFile,
  { options, environment }: ChooseOptions,
): Promise<Chosen> {
  const { model, thinking, name, approve } = options;
  const info = await client
    .session(sessionId)
    .get()
    .catch(() => undefined);
  const isManaged = info !== undefined;
  const isTrusted = (approve === true ? "approved" : "not_approved") === info?.projectTrust;
  const names = Object.keys(options).filter((each) => each !== "sessionDir" && (each !== "approve" || !isTrusted));
  const atStart = names.filter((name) => !settable.has(name));
  if (!isManaged && atStart.length > 0)
    throw new NotCarriedError(`A stored session is opened without ${atStart.join(", ")}.`);
  const place = model?.indexOf("/") ?? -1;
  if (!isManaged && model !== undefined && place === -1)
    throw new NotCarriedError("A stored session is opened without a pattern of a model.");
  const trust = approve === undefined || isManaged ? {} : { approve };
  const session = await client.openSession({ file, anywhere: true, environment, dialogPolicy, ...trust });
  if (isManaged) return { session, isNew: false, ...(names.length > 0 && { notice: unchanged(names) }) };
  const set = async (): Promise<void> => {
    if (model !== undefined) await session.setModel(model.slice(0, place), model.slice(place + 1));
    if (thinking !== undefined) await session.command({ type: "set_thinking_level", level: thinking });
    if (name !== undefined) await session.command({ type: "set_session_name", name });
  };
  return await set().then(
    () => ({ session, isNew: false }),
    (error: Error) => ({ session, isNew: false, notice: error.message }),
  );
}

function unchanged(names: readonly string[]): string {
  return `The session was open already and stays as it is; the command line asks for another: ${names.join(", ")}.`;
}
