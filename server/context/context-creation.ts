import type { ContextOption } from "../../protocol/context-option.ts";
import { WireError } from "../../protocol/errors.ts";
import type { StoredContext, StoredOptions } from "../store/sessions.ts";
import { type ContextOrder, type Contexts, mayStartWithout, type ReadyContext } from "./contexts.ts";
import type { ContextCaller } from "./read-path.ts";
import type { ContextSession } from "./sources.ts";

/** What a session begins with that gets a context. */
export interface WithContext {
  readonly options: StoredOptions;
  readonly context: StoredContext;
  /** The whole of its file, where it has one. */
  readonly content?: Uint8Array;
}

export interface CreationOptions<S extends ContextSession> {
  readonly contexts: Contexts;
  readonly option: ContextOption | undefined;
  readonly order: ContextOrder;
  readonly caller: ContextCaller;
  /** Makes the session. Nothing is left of it where that fails. */
  readonly begin: (given?: WithContext) => Promise<S>;
}

/**
 * Creates a session with the context that its caller wants; with `onError: "warn"`, without one where there can be none.
 * Throws what {@link Contexts.prepare} throws, and what beginning a session can throw.
 */
export async function createWithContext<S extends ContextSession>(options: CreationOptions<S>): Promise<S> {
  const { contexts, option, order, caller, begin } = options;
  if (option === undefined) return await begin();
  let failure: WireError;
  try {
    return await begun(await contexts.prepare(option, order, caller), options);
  } catch (error) {
    await contexts.forget(order.sessionId);
    if (error instanceof NotBegun) throw error.cause;
    if (!mayStartWithout(option, error)) throw error;
    failure = error;
  }
  const session = await begin();
  session.context.failed(failure);
  tellUser(session, failure);
  return session;
}

/** Not taken, or what pi has died of when it was brought. */
function isOfContext(error: unknown): boolean {
  return error instanceof WireError && (error.kind === "context_transport_failed" || error.kind === "child_exited");
}

async function begun<S extends ContextSession>(
  ready: ReadyContext,
  { contexts, order, begin }: CreationOptions<S>,
): Promise<S> {
  try {
    const context = await contexts.keep(order.sessionId, ready);
    const isFile = ready.stored.summary.mode === "session";
    // What is kept on the disk is read again for pi.
    if (!isFile) ready.release();
    const given = { options: ready.options, context, ...(isFile ? { content: ready.bytes } : {}) };
    return await begin(given).catch((error: unknown) => {
      // Whatever else a start fails with, it would fail with again.
      throw isOfContext(error) ? error : new NotBegun(error);
    });
  } finally {
    ready.release();
  }
}

/** Who looks at pi itself is told, too. */
function tellUser({ state }: ContextSession, { message }: WireError): void {
  if (state.kind !== "idle" && state.kind !== "running") return;
  const text = `The session has begun without its context: ${message}`.slice(0, 2_000);
  // Nothing depends on it.
  state.child.link.send({ kind: "notify", text }).catch(() => {});
}

class NotBegun extends Error {
  constructor(cause: unknown) {
    super("The session could not be begun.", { cause });
  }
}
