import { fromLeaf } from "../../extension/branch-view.ts";
import type { SessionEntry, SessionReader } from "../../extension/pi-types.ts";
import { BranchFold } from "../folds.ts";
import { type BlockNews, blockNewsIn, blockNewsOf } from "./block-entries.ts";
import { BlockLedger } from "./block-ledger.ts";
import type { BlockTree } from "./pruning-services.ts";
import type { BlockOperation, BlocksRecord } from "./record.ts";

type Session = SessionReader & { getSessionId(): string };

/** The blocks of the active branch: an incremental fold over its entries, restarted when the branch changes. */
export class BlockFold {
  #session = "";
  readonly #fold = new BranchFold(() => new BlockLedger(), take);

  on(session: Session): BlockTree {
    const sessionId = session.getSessionId();
    if (sessionId !== this.#session) this.#fold.reset();
    this.#session = sessionId;
    return this.#fold.of(session).tree();
  }

  /** The tree if these were appended to the branch one after the other, and which of them would be accepted. */
  with(
    session: Session,
    data: readonly (BlockOperation | BlocksRecord)[],
  ): { readonly tree: BlockTree; readonly taken: readonly boolean[] } {
    const ledger = new BlockLedger();
    for (const one of [...fromLeaf(session)].reverse()) take(ledger, one);
    const taken = data.map((one) => apply(ledger, blockNewsOf(one), ""));
    return { tree: ledger.tree(), taken };
  }
}

function take(ledger: BlockLedger, entry: SessionEntry): BlockLedger {
  ledger.passed(entry.id);
  if (entry.type === "compaction") ledger.compacted(entry.id, entry.firstKeptEntryId);
  else if (entry.type === "message" && entry.message.role === "assistant") ledger.answered(entry.id);
  else apply(ledger, blockNewsIn(entry), entry.id);
  return ledger;
}

function apply(ledger: BlockLedger, news: BlockNews | undefined, entryId: string): boolean {
  if (news === undefined) return false;
  return news.kind === "blocks" ? ledger.made(news.record, entryId, news.callId) : ledger.operated(news);
}
