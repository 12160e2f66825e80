import { LRUCache } from "lru-cache";
import { v7 as uuidv7 } from "uuid";
import { WireError } from "../../protocol/errors.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import type { MethodName } from "../../protocol/methods.ts";
import { canonicalHash } from "../lib/canonical-json.ts";
import { unlessAborted } from "../lib/deadline.ts";
import type { Bound, Call, Effect, Policy } from "./call.ts";
import { paramOf, storable } from "./params.ts";

/** A call with a key, as it is stored. Without a result the call is in progress, or its daemon has ended. */
export interface KeyedCall {
  readonly paramsHash: string;
  /** The id of the effect. */
  readonly subject: string;
  readonly result?: string;
}

export interface KeyStore {
  get(method: string, key: string): KeyedCall | undefined;
  /** Resolves when the key is on disk. */
  begin(method: string, key: string, call: KeyedCall): Promise<void>;
  /** Resolves when the result is on disk. */
  finish(method: string, key: string, call: KeyedCall, isAwaited: boolean): Promise<void>;
  forget(method: string, key: string): Promise<void>;
}

/** Whether an effect with an id took place, by its kind. */
export type EffectLookups = Readonly<
  Record<Exclude<MethodRow["effect"], "setting" | "answer" | undefined>, (id: string) => boolean>
>;

export interface IdempotencyOptions {
  readonly store: KeyStore;
  readonly lookups: EffectLookups;
}

const maxInMemory = 1_000;

/**
 * Lets a call with an `idempotencyKey` take effect once. The same key and params return the first result again, also
 * while the first call is in progress and after a restart; other params are a `conflict`. The key is on disk before the
 * effect. If the daemon ended in between, or the call was cancelled, the id of the effect decides if the call is made
 * again; an effect without an id is `outcome_unknown`. A call that failed without an effect may be made again. Keys are
 * kept per method for 24 hours.
 */
export function idempotency(options: IdempotencyOptions): Policy {
  const calls: KnownCalls = { inProgress: new Map(), done: new LRUCache({ max: maxInMemory }) };
  return ({ name, row }, next) =>
    row.retry === "keyed" && row.key === undefined ? once(name, row, next, { ...options, ...calls }) : next;
}

/** The newest calls in memory, by method and key. */
interface KnownCalls {
  readonly inProgress: Map<string, SharedCall>;
  readonly done: LRUCache<string, SharedCall>;
}

function once<P extends object>(
  method: MethodName,
  { effect: kind, effectId, unstored = [] }: MethodRow,
  next: Bound<P>,
  { store, lookups, inProgress, done }: IdempotencyOptions & KnownCalls,
): Bound<P> {
  /** Whether the effect of a failed call took place. Undefined: the call itself says if that is unknown. */
  const isKnown =
    kind === undefined || kind === "answer" ? undefined : kind === "setting" ? () => false : lookups[kind];

  /** Lets later callers find the call while it is in progress, and after it has succeeded. */
  const note = (id: string, call: SharedCall): void => {
    inProgress.set(id, call);
    call.result
      .then(() => done.set(id, call))
      .catch(() => {})
      .finally(() => {
        if (inProgress.get(id) === call) inProgress.delete(id);
      });
  };

  /** Makes the call, for the first time or with the id of the earlier attempt. */
  const make = async (
    key: string,
    { isRepeated, ...begun }: KeyedCall & Pick<Effect, "isRepeated">,
    signal: AbortSignal,
    run: (effect: Effect) => unknown,
  ): Promise<unknown> => {
    const { subject } = begun;
    const reserved = store.begin(method, key, begun);
    let isMade = false;
    try {
      // A prompt waits for the key itself, because its text and the key share a transaction.
      if (kind !== "prompt") await reserved;
      reserved.catch(() => {});
      isMade = true;
      const value = await run({ id: subject, reserved, isRepeated });
      // For an effect with an id, the key is enough.
      const isAwaited = kind === undefined;
      const result = JSON.stringify(value ?? null);
      const finished = store.finish(method, key, { ...begun, result }, isAwaited).catch(() => {});
      // The call succeeded even if its result cannot be stored.
      if (isAwaited) await finished;
      return value;
    } catch (error) {
      const wasReserved = await reserved.then(
        () => true,
        () => false,
      );
      // A cancelled call may have taken effect.
      const isUnknown = isOutcomeUnknown(error) || (signal.aborted && isAbort(error, signal));
      // What has an id that the client chose may be the effect of another call.
      const isOthers = error instanceof WireError && error.kind === "conflict";
      const mayBeDone = isKnown === undefined ? isMade && isUnknown : isKnown(subject) && !isOthers;
      if (wasReserved && !mayBeDone) await store.forget(method, key).catch(() => {});
      throw error;
    }
  };

  /** Returns the result of a call that all its callers have left, or makes the call again if it failed. */
  const afterAbandoned = async (
    id: string,
    abandoned: SharedCall,
    call: Call,
    again: () => unknown,
  ): Promise<unknown> => {
    try {
      return await unlessAborted(abandoned.result, call.signal);
    } catch {
      call.signal.throwIfAborted();
    }
    if (inProgress.get(id) === abandoned) inProgress.delete(id);
    return await again();
  };

  const enter: Bound<P> = (params, call) => {
    const given = paramOf(params, "idempotencyKey");
    if (typeof given !== "string") return next(params, call);
    const key = ownKey(given, call);
    const paramsHash = canonicalHash(storable(params, unstored));
    const id = `${method} ${key}`;
    const shared = inProgress.get(id) ?? done.get(id);
    const stored = shared === undefined ? store.get(method, key) : undefined;
    const known = shared ?? stored;
    if (known !== undefined && known.paramsHash !== paramsHash) throw conflict(method, given);
    if (shared !== undefined) {
      return shared.isAbandoned ? afterAbandoned(id, shared, call, () => enter(params, call)) : shared.join(call);
    }
    if (stored?.result !== undefined) return JSON.parse(stored.result);
    if (stored !== undefined && kind === undefined) throw outcomeUnknown(method, given);
    const chosen = effectId === undefined ? undefined : paramOf(params, effectId);
    const subject = stored?.subject || (typeof chosen === "string" ? chosen : uuidv7());
    const begun = { paramsHash, subject, isRepeated: stored !== undefined };
    const first = new SharedCall(paramsHash, call, (open) =>
      make(key, begun, open.signal, (effect) => next(params, { ...open, effect })),
    );
    note(id, first);
    return first.join(call);
  };
  return enter;
}

/** One call with several callers. It is cancelled when the last of them has gone. */
class SharedCall {
  readonly paramsHash: string;
  readonly result: Promise<unknown>;
  readonly #controller = new AbortController();
  #callers = 0;

  constructor(paramsHash: string, first: Call, make: (call: Call) => Promise<unknown>) {
    const { peer, by, grant, isLocal } = first;
    this.paramsHash = paramsHash;
    const { signal } = this.#controller;
    this.result = make({
      ...(peer === undefined ? {} : { peer }),
      ...(by === undefined ? {} : { by }),
      ...(grant === undefined ? {} : { grant }),
      ...(isLocal === undefined ? {} : { isLocal }),
      ...(first.answerAt === undefined ? {} : { answerAt: first.answerAt.bind(first) }),
      signal,
    });
    this.result.catch(() => {});
  }

  /** Whether all callers have gone. The call may still succeed. */
  get isAbandoned(): boolean {
    return this.#controller.signal.aborted;
  }

  join({ signal }: Call): Promise<unknown> {
    this.#callers += 1;
    const leave = (): void => {
      this.#callers -= 1;
      if (this.#callers === 0) this.#controller.abort(signal.reason);
    };
    if (signal.aborted) leave();
    else {
      signal.addEventListener("abort", leave, { once: true });
      const stay = (): void => signal.removeEventListener("abort", leave);
      this.result.then(stay, stay);
    }
    return this.result;
  }
}

/** A key belongs to its token: another token can neither find nor use it. */
function ownKey(given: string, { grant }: Call): string {
  return grant === undefined || grant.keys === "" ? given : `${given} ${grant.keys}`;
}

function conflict(method: MethodName, idempotencyKey: string): WireError {
  return new WireError("conflict", `The idempotency key was used before for another ${method}.`, { idempotencyKey });
}

/** Whether a call ended because its signal was aborted: with the reason, or with the error of Node's own functions. */
function isAbort(error: unknown, signal: AbortSignal): boolean {
  return error === signal.reason || (error instanceof Error && error.name === "AbortError");
}

/** Whether the method itself says that it may have taken effect. */
function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof WireError && error.kind === "outcome_unknown";
}

function outcomeUnknown(method: MethodName, idempotencyKey: string): WireError {
  const why = `This ${method} was in progress when the daemon ended, or when its last caller left. Whether it took effect is unknown: check the state, and use another key.`;
  return new WireError("outcome_unknown", why, { idempotencyKey });
}
