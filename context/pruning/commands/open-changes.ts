import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PruningChanged } from "../../../protocol/pruning/notices.ts";
import type { BlockTree, PruningServices, Written } from "../pruning-services.ts";

type Change = PruningChanged & { readonly cause: "compress" | "decompress" | "recompress" };

const part = "pruning_changes";
const maxOpen = 1_000;

/** Notifies subscribers of block changes when the branch contains them. */
export class OpenChanges {
  readonly #host: Pick<PruningServices, "notify" | "blocks">;
  #open: (Change & { readonly sessionId: string })[] = [];

  constructor(host: Pick<PruningServices, "notify" | "blocks" | "on">) {
    this.#host = host;
    host.on(part, "turn_start", (_event, ctx) => this.#look(ctx));
    // After the handler of the blocks, which writes operations that no boundary accepted.
    host.on(part, "agent_settled", (_event, ctx) => {
      this.#look(ctx);
      this.#open = [];
    });
  }

  add(change: Change, written: Written, { sessionManager }: ExtensionContext): void {
    if (written === "now") {
      this.#host.notify("pruning/changed", change);
      return;
    }
    // The last change of a block wins.
    this.#open = this.#open.filter(({ blocks }) => blocks.join() !== change.blocks.join()).slice(1 - maxOpen);
    this.#open.push({ ...change, sessionId: sessionManager.getSessionId() });
  }

  #look(ctx: ExtensionContext): void {
    if (this.#open.length === 0) return;
    const now = ctx.sessionManager.getSessionId();
    const tree = this.#host.blocks.on(ctx);
    const open = this.#open;
    this.#open = open.filter((one) => one.sessionId === now && !isDone(one, tree));
    for (const { sessionId, ...change } of open)
      if (sessionId === now && isDone(change, tree)) this.#host.notify("pruning/changed", change);
  }
}

function isDone({ cause, blocks }: Change, tree: BlockTree): boolean {
  const wanted = cause === "decompress" ? "inactive" : "active";
  return blocks.every((id) => {
    const state = tree.find(id)?.state.kind;
    return cause === "compress" ? state !== undefined : state === wanted;
  });
}
