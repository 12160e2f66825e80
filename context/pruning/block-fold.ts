import type { SessionEntry, SessionReader } from "../../extension/pi-types.ts";
import { type BlockNews, blockNewsIn, blockNewsOf } from "./block-entries.ts";
import { BlockLedger } from "./block-ledger.ts";
import type { BlockTree } from "./pruning-services.ts";
import type { BlockOperation, BlocksRecord } from "./record.ts";

type Session = SessionReader & { getSessionId(): string };

/** The blocks of the active branch: an incremental fold over its entries, restarted when the branch changes. */
export class BlockFold {
  #session = "";
  #leaf: string | undefined;
  #ledger = new BlockLedger();

  on(session: Session): BlockTree {
    this.#follow(session);
    return this.#ledger.tree();
  }

  /** The tree if these were appended to the branch one after the other, and which of them would be accepted. */
  with(
    session: Session,
    data: readonly (BlockOperation | BlocksRecord)[],
  ): { readonly tree: BlockTree; readonly taken: readonly boolean[] } {
    const ledger = new BlockLedger();
    const entries: SessionEntry[] = [];
    const seen = new Set<string>();
    for (let entry = session.getLeafEntry(); entry !== undefined && !seen.has(entry.id); ) {
      seen.add(entry.id);
      entries.push(entry);
      entry = entry.parentId === null ? undefined : session.getEntry(entry.parentId);
    }
    for (const one of entries.reverse()) take(ledger, one);
    const taken = data.map((one) => apply(ledger, blockNewsOf(one), ""));
    return { tree: ledger.tree(), taken };
  }

  #follow(session: Session): void {
    const leaf = session.getLeafEntry();
    const sessionId = session.getSessionId();
    if (sessionId === this.#session && leaf?.id === this.#leaf) return;
    const added: SessionEntry[] = [];
    const seen = new Set<string>();
    let entry = leaf;
    const isKnown = (id: string): boolean => sessionId === this.#session && id === this.#leaf;
    while (entry !== undefined && !isKnown(entry.id) && !seen.has(entry.id)) {
      seen.add(entry.id);
      added.push(entry);
      entry = entry.parentId === null ? undefined : session.getEntry(entry.parentId);
    }
    if (entry === undefined || !isKnown(entry.id)) this.#ledger = new BlockLedger();
    this.#session = sessionId;
    this.#leaf = leaf?.id;
    for (const one of added.reverse()) take(this.#ledger, one);
  }
}

function take(ledger: BlockLedger, entry: SessionEntry): void {
  ledger.passed(entry.id);
  if (entry.type === "compaction") ledger.compacted(entry.id, entry.firstKeptEntryId);
  else if (entry.type === "message" && entry.message.role === "assistant") ledger.answered(entry.id);
  else apply(ledger, blockNewsIn(entry), entry.id);
}

function apply(ledger: BlockLedger, news: BlockNews | undefined, entryId: string): boolean {
  if (news === undefined) return false;
  return news.kind === "blocks" ? ledger.made(news.record, entryId, news.callId) : ledger.operated(news);
}
