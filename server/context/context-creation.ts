import type { ContextOption } from "../../protocol/context-option.ts";
import { WireError } from "../../protocol/errors.ts";
import type { StoredContext, StoredOptions } from "../store/stored-session.ts";
import { type ContextOrder, type Contexts, mayStartWithout, type ReadyContext } from "./contexts.ts";
import type { ContextCaller } from "./read-path.ts";
import type { ContextSession } from "./sources.ts";

/** The start of a session with a context. */
export interface WithContext {
  readonly options: StoredOptions;
  readonly context: StoredContext;
  /** The complete session file, if it has one. */
  readonly content?: Uint8Array;
}

export interface CreationOptions<S extends ContextSession> {
  readonly contexts: Contexts;
  readonly option: ContextOption | undefined;
  readonly order: ContextOrder;
  readonly caller: ContextCaller;
  /** Creates the session. Leaves nothing if that fails. */
  readonly begin: (given?: WithContext) => Promise<S>;
}

/**
 * Creates a session with the requested context; with `onError: "warn"`, without a context if that fails. Throws what
 * {@link Contexts.prepare} throws, and errors of creating a session.
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

/** The helper rejected it, or pi died while it was sent. */
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
    // A stored context is read again for pi.
    if (!isFile) ready.release();
    const given = { options: ready.options, context, ...(isFile ? { content: ready.bytes } : {}) };
    return await begin(given).catch((error: unknown) => {
      // Any other error would fail the next start as well.
      throw isOfContext(error) ? error : new NotBegun(error);
    });
  } finally {
    ready.release();
  }
}

/** Also tells users of pi itself. */
function tellUser({ state }: ContextSession, { message }: WireError): void {
  if (state.kind !== "idle" && state.kind !== "running") return;
  const text = `The session started without its context: ${message}`.slice(0, 2_000);
  // Nothing depends on the result.
  state.child.link.send({ kind: "notify", text }).catch(() => {});
}

class NotBegun extends Error {
  constructor(cause: unknown) {
    super("The session could not be started.", { cause });
  }
}
