import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Boundary } from "../../../extension/boundary.ts";
import { fromLeaf } from "../../../extension/branch-view.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { branchUse } from "../cache/branch-use.ts";
import { asksForOneToken, viewOf } from "../cache/payload.ts";

/** The last request of a run, for a request that begins with the same text, which the provider has cached. */
export interface CachedRequest {
  /** Shared with pi: must not be modified. */
  readonly payload: Readonly<Record<string, unknown>>;
  /** As reported. */
  readonly tokens: number;
  /** That can be read from the cache, according to the reported usage. */
  readonly cachedTokens: number;
}

interface UpToNow {
  readonly state: Pick<Boundary["state"], "entries">;
  readonly ctx: ExtensionContext;
}

interface Listed {
  readonly leafId: string | null;
  readonly model: string;
  payload: CachedRequest["payload"] | undefined;
}

/** Holds the payload of the last request while nothing else has changed the context. */
export class LastRequest {
  #listed: Listed | undefined;

  /** Call when a message list is complete, before its request. */
  listed(ctx: ExtensionContext): void {
    this.#listed = { leafId: ctx.sessionManager.getLeafId(), model: modelName(ctx), payload: undefined };
  }

  /** Call with each payload after our own stages: the listed request, or one that keeps its cache warm. */
  sent(payload: unknown): void {
    if (this.#listed !== undefined && isRecord(payload) && !asksForOneToken(payload)) this.#listed.payload = payload;
  }

  forget(): void {
    this.#listed = undefined;
  }

  /**
   * The last request, if it has all entries of the branch up to this one as they are now, and was answered with its usage.
   * An edit since then could hide a secret, also one that another extension proposes at this boundary.
   */
  upTo(entryId: string, { state, ctx }: UpToNow): CachedRequest | undefined {
    const { leafId, model, payload } = this.#listed ?? {};
    if (payload === undefined || model !== modelName(ctx)) return undefined;
    if (state.entries.some(({ type }) => type === "context_edit")) return undefined;
    const { last } = branchUse(ctx.sessionManager);
    let isAnswered = false;
    for (const entry of fromLeaf(ctx.sessionManager)) {
      if (entry.id === leafId) {
        return isAnswered && last !== undefined ? { payload, ...tokensOf(last, payload) } : undefined;
      }
      if (entry.id === entryId || entry.type === "context_edit" || entry.type === "compaction") return undefined;
      isAnswered ||= entry.id === last?.entryId;
    }
    return undefined;
  }
}

/** With cache marks, the reported cached tokens; without marks, the whole prompt, if the service caches at all. */
function tokensOf(
  { inputTokens, cachedTokens }: { readonly inputTokens: number; readonly cachedTokens: number },
  payload: unknown,
): Pick<CachedRequest, "tokens" | "cachedTokens"> {
  const isWhole = viewOf(payload)?.isMarked === false && cachedTokens > 0;
  return { tokens: inputTokens, cachedTokens: isWhole ? inputTokens : cachedTokens };
}

/** The session's model, as `provider/id`. */
export function modelName({ model }: ExtensionContext): string {
  return model === undefined ? "" : `${model.provider}/${model.id}`;
}
