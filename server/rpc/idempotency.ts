import { LRUCache } from "lru-cache";
import { v7 as uuidv7 } from "uuid";
import { WireError } from "../../protocol/errors.ts";
import type { MethodName } from "../../protocol/methods.ts";
import { canonicalHash } from "../lib/canonical-json.ts";
import { unlessAborted } from "../lib/deadline.ts";
import type { Call, Handlers, Subject } from "./call.ts";
import { SharedCall } from "./shared-call.ts";

/** A call with a key, as it is kept across restarts. Without a result it is, or was, under way. */
export interface KeyedCall {
  readonly paramsHash: string;
  readonly subject: string;
  readonly result?: string;
}

/** Where they are kept. */
export interface KeyStore {
  get(method: string, key: string): KeyedCall | undefined;
  /** Resolves when the key is on disk. */
  begin(method: string, key: string, call: KeyedCall): Promise<void>;
  /** Resolves when the result is on disk. */
  finish(method: string, key: string, call: KeyedCall): Promise<void>;
  forget(method: string, key: string): Promise<void>;
}

/** A method whose effect is known by an id, so that a call can be made again with that id and has its effect once. */
export interface SubjectMethod {
  /** Whether there is anything under the id. */
  readonly isKnown: (subjectId: string) => boolean;
  /** Its handler waits for the key itself, together with what else it stores. */
  readonly waitsForKey?: boolean;
}

type AnyHandler = (params: Readonly<Record<string, unknown>>, call: Call) => unknown;

const maxInMemory = 1_000;

/**
 * Lets a call with an `idempotencyKey` happen once: the same key and params give the first result again, also while the
 * first call is still under way and after a restart; other params are a `conflict`. The key is on disk before the effect.
 * A daemon that ended in between finds it: what has become of the effect is then known by its id, and is
 * `outcome_unknown` where it has none, as it is behind a call that was cancelled. A call that failed without an effect may be made again. Keys are kept per method
 * for 24 hours.
 */
export function idempotent(
  handlers: Handlers,
  store: KeyStore,
  subjects: Readonly<Partial<Record<MethodName, SubjectMethod>>> = {},
): Handlers {
  const underWay = new Map<string, SharedCall>();
  const done = new LRUCache<string, SharedCall>({ max: maxInMemory });

  /** Has those find the call who come while it is under way, and when it has succeeded. */
  const note = (id: string, call: SharedCall): void => {
    underWay.set(id, call);
    call.result
      .then(() => done.set(id, call))
      .catch(() => {})
      .finally(() => {
        if (underWay.get(id) === call) underWay.delete(id);
      });
  };

  const wrap = (method: MethodName, handler: AnyHandler): AnyHandler => {
    const of = subjects[method];

    /** Makes the call: for the first time, or as far as it came before. */
    const make = async (
      key: string,
      begun: KeyedCall,
      signal: AbortSignal,
      remake: (subject: Subject) => unknown,
    ): Promise<unknown> => {
      const { subject } = begun;
      const reserved = store.begin(method, key, begun);
      let isMade = false;
      try {
        if (of?.waitsForKey !== true) await reserved;
        reserved.catch(() => {});
        isMade = true;
        const value = await remake({ id: subject, reserved });
        const finished = store.finish(method, key, { ...begun, result: JSON.stringify(value ?? null) }).catch(() => {});
        // What has happened is not refused because it could not be noted. Where the effect has an id, the key is enough.
        if (of === undefined) await finished;
        return value;
      } catch (error) {
        const wasReserved = await reserved.then(
          () => true,
          () => false,
        );
        // One that was cancelled may have had its effect all the same, and where that has no id nobody can look.
        const isUnknown = isOutcomeUnknown(error) || (signal.aborted && isAbort(error, signal));
        const mayBeDone = of === undefined ? isMade && isUnknown : of.isKnown(subject);
        if (wasReserved && !mayBeDone) await store.forget(method, key).catch(() => {});
        throw error;
      }
    };

    /** What all its callers have left is nobody's answer: who comes now gets its result, or makes the call afresh. */
    const behind = async (id: string, abandoned: SharedCall, call: Call, afresh: () => unknown): Promise<unknown> => {
      try {
        return await unlessAborted(abandoned.result, call.signal);
      } catch {
        call.signal.throwIfAborted();
      }
      if (underWay.get(id) === abandoned) underWay.delete(id);
      return await afresh();
    };

    const enter: AnyHandler = (params, call) => {
      const given = params["idempotencyKey"];
      if (typeof given !== "string") return handler(params, call);
      const key = ownKey(given, call);
      const paramsHash = canonicalHash(params);
      const id = `${method} ${key}`;
      const shared = underWay.get(id) ?? done.get(id);
      const known = shared ?? store.get(method, key);
      if (known !== undefined && known.paramsHash !== paramsHash) throw conflict(method, given);
      if (shared !== undefined) {
        return shared.isAbandoned ? behind(id, shared, call, () => enter(params, call)) : shared.join(call);
      }
      const stored = known as KeyedCall | undefined;
      if (stored?.result !== undefined) return JSON.parse(stored.result);
      if (stored !== undefined && of === undefined) throw outcomeUnknown(method, given);
      const begun: KeyedCall = { paramsHash, subject: stored?.subject || uuidv7() };
      const first = new SharedCall(paramsHash, call, (open) =>
        make(key, begun, open.signal, (subject) => handler(params, { ...open, subject })),
      );
      note(id, first);
      return first.join(call);
    };
    return enter;
  };

  return Object.fromEntries(
    Object.entries(handlers).map(([method, handler]) => [method, wrap(method as MethodName, handler as never)]),
  ) as unknown as Handlers;
}

/** A key is its token's own: no other can learn of it, or use it up. */
function ownKey(given: string, { grant }: Call): string {
  return grant === undefined || grant.keys === "" ? given : `${given} ${grant.keys}`;
}

function conflict(method: MethodName, idempotencyKey: string): WireError {
  return new WireError("conflict", `The idempotency key was used before for another ${method}.`, { idempotencyKey });
}

/** Whether a call has ended because its signal was aborted: with its reason, or with what Node's own functions reject with. */
function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === "AbortError");
}

/** Whether a method says itself that it may have had its effect. */
function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof WireError && error.kind === "outcome_unknown";
}

function outcomeUnknown(method: MethodName, idempotencyKey: string): WireError {
  const why = `This ${method} was under way when the daemon ended, or when nobody waited for it any more. Whether it took effect is not known: look, and use another key.`;
  return new WireError("outcome_unknown", why, { idempotencyKey });
}
