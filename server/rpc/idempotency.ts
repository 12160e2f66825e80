import { LRUCache } from "lru-cache";
import { WireError } from "../../protocol/errors.ts";
import type { MethodName } from "../../protocol/methods.ts";
import { canonicalHash } from "../lib/canonical-json.ts";
import type { Handlers } from "./call.ts";

/** Where results are kept across restarts. */
export interface ResultStore {
  get(method: string, key: string): { readonly paramsHash: string; readonly result: string } | undefined;
  /** Resolves when it is on disk. */
  put(method: string, key: string, stored: { readonly paramsHash: string; readonly result: string }): Promise<void>;
}

interface Remembered {
  readonly paramsHash: string;
  readonly result: Promise<unknown>;
}

const maxInMemory = 1_000;

/**
 * Lets a call with an `idempotencyKey` happen once: the same key and params give the first result again, also while
 * the first call is still under way and after a restart; other params are a `conflict`. A call that failed may be made
 * again. Keys are kept per method for 24 hours.
 */
export function idempotent(handlers: Handlers, store: ResultStore): Handlers {
  const recent = new LRUCache<string, Remembered>({ max: maxInMemory });

  const wrap =
    (method: MethodName, handler: (params: never, call: never) => unknown) =>
    (params: Readonly<Record<string, unknown>>, call: never): unknown => {
      const key = params["idempotencyKey"];
      if (typeof key !== "string") return handler(params as never, call);
      const paramsHash = canonicalHash(params);
      const id = `${method} ${key}`;
      const known = recent.get(id) ?? fromStore(store, method, key);
      if (known !== undefined) {
        if (known.paramsHash === paramsHash) return known.result;
        throw new WireError("conflict", `The idempotency key was used before for another ${method}.`, {
          idempotencyKey: key,
        });
      }
      const result = Promise.resolve(handler(params as never, call)).then(async (value) => {
        // What has happened is not refused because it could not be noted: a second call would do it again.
        await store.put(method, key, { paramsHash, result: JSON.stringify(value) }).catch(() => {});
        return value;
      });
      recent.set(id, { paramsHash, result });
      result.catch(() => recent.delete(id));
      return result;
    };

  return Object.fromEntries(
    Object.entries(handlers).map(([method, handler]) => [method, wrap(method as MethodName, handler as never)]),
  ) as unknown as Handlers;
}

function fromStore(store: ResultStore, method: string, key: string): Remembered | undefined {
  const stored = store.get(method, key);
  return stored === undefined
    ? undefined
    : { paramsHash: stored.paramsHash, result: Promise.resolve(JSON.parse(stored.result)) };
}
