import { writeFile } from "node:fs/promises";
import { basename, resolve } from "node:path";
import type { Client } from "../../client/client.ts";
import type { CallOptions } from "../../client/daemon-peer.ts";
import type { SessionHandle } from "../../client/session-handle.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Params } from "../../protocol/methods.ts";
import { defined, isRecord } from "../../protocol/objects.ts";
import type { CreateOptions } from "./carried-options.ts";
import { beginning, dialogPolicy, type OpenOptions, openFile, ownViewer, type Place } from "./choose-session.ts";
import type { GivenCommand } from "./pi-record.ts";
import { sessionFileAt } from "./session-files.ts";

/** What a command works on. */
export interface Subject {
  readonly client: Client;
  readonly session: SessionHandle;
  /** With which sessions of this front end are created. */
  readonly options: CreateOptions;
  /** Whether this pi says what became of a prompt. */
  readonly saysDisposition: boolean;
  /** Names a shell command in pi's events. */
  readonly bashId: string;
  /** Moves the front end to another session; resolves when it has written what is there since that place. */
  readonly move: (session: SessionHandle, place?: Place) => Promise<void>;
}

type Perform = (command: GivenCommand, subject: Subject, options: CallOptions) => Promise<unknown>;

/** Commands after which the front end has another session. */
export const moving: ReadonlySet<unknown> = new Set(["new_session", "switch_session", "fork", "clone"]);

/** pi names its settings like this; they are those of all its sessions. */
const shared: ReadonlySet<string> = new Set([
  "set_steering_mode",
  "set_follow_up_mode",
  "set_auto_retry",
  "set_auto_compaction",
]);

/** Names of commands that the daemon passes on. Others pi does not know either. */
const knownName = /^[a-z][a-z0-9_]{0,63}$/;

/** How each command of pi reaches the daemon, and what pi's `data` is made of. Others go to pi as they are. */
const performers: Readonly<Record<string, Perform>> = {
  prompt: async ({ message, images, streamingBehavior }, { client, session, saysDisposition }, options) => {
    const ifRunning = streamingBehavior === undefined ? {} : { ifRunning: streamingBehavior };
    const params = { sessionId: session.id, text: message, ...defined({ images }), ...ifRunning };
    const { disposition } = await client.call("session/prompt", params as Params<"session/prompt">, options);
    return saysDisposition ? { disposition } : undefined;
  },
  steer: queuing("session/steer"),
  follow_up: queuing("session/followUp"),
  abort: async (_, { session }, options) => {
    await session.abort(options);
  },
  clear_queue: async (_, { session }, options) => {
    const { steering, followUp } = await session.clearQueue(options);
    return { steering, followUp };
  },
  compact: async ({ customInstructions }, { client, session }, options) => {
    // pi takes an empty text for none.
    const only = customInstructions === "" ? {} : defined({ customInstructions });
    const params = { sessionId: session.id, ...only } as Params<"session/compact">;
    return (await client.call("session/compact", params, options)).compaction;
  },
  bash: async ({ command, excludeFromContext }, { client, session, bashId }, options) => {
    const params = { sessionId: session.id, command, ...defined({ excludeFromContext }), bashId };
    const { bashId: _, ...data } = await client.call("session/bash", params as Params<"session/bash">, options);
    return data;
  },
  export_html: async ({ outputPath }, { client, session }, options) => {
    const { cwd, file, ephemeral } = await session.get();
    if (ephemeral !== undefined) throw new PiError("Cannot export in-memory session to HTML");
    if (!(await has(session, "assistantMessages")))
      throw new PiError("Nothing to export yet - start a conversation first");
    const { html } = await client.call("session/export", { sessionId: session.id }, options);
    const named = typeof outputPath === "string" && outputPath !== "" ? outputPath : undefined;
    const path = named ?? `pi-session-${basename(file, ".jsonl")}.html`;
    const absolute = resolve(cwd, path);
    await writeFile(absolute, html).catch((error: Error) => {
      throw new PiError(error.message.replace(absolute, path));
    });
    return { path };
  },
  new_session: async ({ parentSession }, { client, session, options: created, move }, options) => {
    const parent = typeof parentSession === "string" && parentSession !== "" ? { parentSession } : {};
    const { cwd, ephemeral } = await session.get();
    const create = async (): Promise<SessionHandle> =>
      await client.createSession({ ...created, cwd, dialogPolicy }, options);
    if (ephemeral !== undefined) {
      await move(await create(), beginning());
      return { cancelled: false };
    }
    return await unlessCancelled(async () => {
      const params = { sessionId: session.id, ...parent, abortRun: true };
      const made = await client.call("session/startNew", params, options).then(
        (result) => client.session(result.session.sessionId),
        // Others follow the session, and keep its pi.
        (error: unknown) => (reasonOf(error) === "shared" ? create() : Promise.reject(error)),
      );
      await move(made, beginning());
      return { cancelled: false };
    });
  },
  switch_session: async ({ sessionPath }, { client, session, options: created, move }, options) => {
    const { cwd } = await session.get();
    const path = resolve(cwd, String(sessionPath));
    // pi makes a session at a path that does not exist.
    const file = sessionFileAt(path);
    if (file === undefined) {
      await move(
        await client.createSession({ ...withFile(created), cwd, file: path, dialogPolicy }, options),
        beginning(),
      );
      return { cancelled: false };
    }
    return await unlessCancelled(async () => {
      const opened = await openFile(client, file, { ...kept(created), from: session.id, viewer: ownViewer }, options);
      await move(opened.session, opened.place);
      return { cancelled: false };
    });
  },
  fork: async ({ entryId }, { client, session, move }, options) =>
    await unlessCancelled(async () => {
      const params = { sessionId: session.id, entryId: String(entryId), abortRun: true };
      const { session: forked, text } = await client.call("session/fork", params, options);
      await move(client.session(forked.sessionId), beginning());
      return { text, cancelled: false };
    }),
  clone: async (_, { client, session, saysDisposition, move }, options) => {
    // A later pi saves a session with its first message.
    if (!(await has(session, saysDisposition ? "userMessages" : "assistantMessages")))
      throw new PiError(`${notSaved} ${saysDisposition ? sendFirst : waitFirst} before cloning or forking it.`);
    return await unlessCancelled(async () => {
      const params = { sessionId: session.id, abortRun: true };
      await move(client.session((await client.call("session/clone", params, options)).session.sessionId), beginning());
      return { cancelled: false };
    });
  },
};

/** Whether a command goes to pi as it is, and is answered at once. */
export function isPassedOn(type: unknown): boolean {
  return typeof type !== "string" || !Object.hasOwn(performers, type);
}

/** A command for pi's queue of messages. */
function queuing(method: "session/steer" | "session/followUp"): Perform {
  return async ({ message, images }, { client, session, saysDisposition }, options) => {
    await refuseExtensionCommand(message, session);
    const params = { sessionId: session.id, text: message, ...defined({ images }) };
    await client.call(method, params as Params<typeof method>, options);
    return saysDisposition ? { disposition: "queued" } : undefined;
  };
}

/** What pi answers where an extension prevents a move. */
async function unlessCancelled<T>(move: () => Promise<T>): Promise<T | { readonly cancelled: true }> {
  try {
    return await move();
  } catch (error) {
    if (reasonOf(error) === "cancelled_by_extension") return { cancelled: true };
    throw error;
  }
}

function reasonOf(error: unknown): unknown {
  return error instanceof WireError ? (error.data as { readonly reason?: unknown }).reason : undefined;
}

/** A session with a file is not ephemeral. */
function withFile({ ephemeral: _, ...created }: CreateOptions): CreateOptions {
  return created;
}

/** What a pi keeps when it goes to another session, which has its own model and name. */
function kept({ environment, ...created }: CreateOptions): OpenOptions {
  const { model: _, provider: __, thinking: ___, name: ____, whenLeft: _____, ...options } = created;
  return { options, environment };
}

const notSaved = "This session has not been saved yet.";
const sendFirst = "Send a message";
const waitFirst = "Wait for the first assistant response";

/** What pi would say. */
class PiError extends Error {}

/** pi writes a session's file at the first answer; the daemon's sessions have one from the start. */
async function has(session: SessionHandle, what: "userMessages" | "assistantMessages"): Promise<boolean> {
  const stats = await session.command({ type: "get_session_stats" });
  return isRecord(stats) && Number(stats[what]) > 0;
}

/** The daemon would run it at once, and pi refuses it. */
async function refuseExtensionCommand(text: unknown, session: SessionHandle): Promise<void> {
  const name = typeof text === "string" ? /^\/(\S+)/.exec(text)?.[1] : undefined;
  if (name === undefined) return;
  const data = await session.command({ type: "get_commands" });
  const commands = isRecord(data) && Array.isArray(data["commands"]) ? (data["commands"] as unknown[]) : [];
  const isOne = commands.some((each) => isRecord(each) && each["name"] === name && each["source"] === "extension");
  if (!isOne) return;
  throw new PiError(
    `Extension command "/${name}" cannot be queued. Use prompt() or execute the command when not streaming.`,
  );
}

/** Performs a command, and resolves with pi's `data` of it. Rejects with the daemon's error. */
export async function perform(command: GivenCommand, subject: Subject, options: CallOptions): Promise<unknown> {
  const { type } = command;
  if (typeof type === "string" && Object.hasOwn(performers, type))
    return await (performers[type] as Perform)(command, subject, options);
  if (typeof type !== "string" || !knownName.test(type)) throw new PiError(`Unknown command: ${String(type)}`);
  const { id: _, ...record } = command;
  const params = {
    sessionId: subject.session.id,
    command: record,
    ...(shared.has(type) && { confirmShared: true }),
  };
  return (await subject.client.call("session/command", params as Params<"session/command">, options)).data;
}
