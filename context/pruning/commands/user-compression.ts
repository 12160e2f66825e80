import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { AskRefused } from "../../../extension/engine-port.ts";
import type { Compressor } from "../compress/compressor.ts";
import { readId } from "../compress/written-id.ts";
import type { PruningServices } from "../pruning-services.ts";
import type { BlocksRecord } from "../record.ts";

const maxNotes = 64;

/** A compression written by a user. */
export interface UserCompression {
  readonly topic: string;
  readonly ranges: readonly { readonly startId: string; readonly endId: string; readonly summary: string }[];
}

/** The result before it is stored. */
interface Compressed {
  readonly record: BlocksRecord;
  /** Differences from the request. */
  readonly notes: string[];
  /** Ids of messages that leave the context. */
  readonly pruned: string[];
  readonly borders: readonly { readonly startId?: string; readonly endId?: string }[];
}

/** Throws {@link AskRefused} with all problems. */
export function compressed(
  host: Pick<PruningServices, "pruning" | "blocks">,
  compressor: Compressor,
  call: UserCompression,
  ctx: ExtensionContext,
): Compressed {
  const tree = host.blocks.ahead(ctx);
  for (const { startId, endId } of call.ranges) {
    for (const written of [startId, endId]) {
      const id = readId(written);
      if (id?.kind !== "block" || tree.find(id.id) !== undefined) continue;
      throw new AskRefused("block_not_found", `${id.id} does not exist.`, { block: id.id });
    }
  }
  const { placeholderMode } = host.pruning().compress;
  const placeholders = placeholderMode === "lenient" ? "lenient" : "strict";
  const result = compressor.compress(call, { placeholders }, ctx);
  if (result.kind === "refused") {
    throw new AskRefused("invalid_params", result.problems.join("\n"), { candidates: result.candidates });
  }
  const notes = result.ranges.flatMap(({ widened, isRepaired, label }) => [
    ...widened,
    ...(isRepaired ? [`The placeholders of ${label} were put right.`] : []),
  ]);
  return {
    record: result.record,
    notes: notes.slice(0, maxNotes),
    pruned: result.hidden.filter((id) => id.startsWith("m")).slice(0, 1_000),
    borders: result.ranges.map(({ label }) => bordersIn(label)),
  };
}

/** The borders in a label: `m010–m031`, or `m010` alone. */
function bordersIn(label: string): Compressed["borders"][number] {
  const [startId, endId = startId] = label.split("–");
  if (startId === undefined || readId(startId) === undefined) return {};
  return { startId, ...(endId === undefined ? {} : { endId }) };
}
