import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { recallIdOf } from "../../parts/recall/record.ts";
import type { PruningServices } from "../pruning-services.ts";
import type { Replacement } from "./batch.ts";

const maxTold = 1_000;

/** Notifies subscribers of removals when the branch contains them, because pi can refuse a proposal. */
export class Announcements {
  readonly #host: Pick<PruningServices, "notify" | "recall">;
  readonly #proposed: (readonly Replacement[])[] = [];

  constructor(host: Pick<PruningServices, "notify" | "recall">) {
    this.#host = host;
  }

  proposed(replacements: readonly Replacement[]): void {
    this.#proposed.push(replacements);
  }

  /** Announces proposals that were written. */
  seen({ sessionManager }: ExtensionContext): void {
    for (const replacements of this.#proposed.splice(0))
      this.now(replacements.filter((one) => isWritten(one, this.#host, sessionManager)));
  }

  now(replacements: readonly Replacement[]): void {
    if (replacements.length === 0) return;
    const pruned = replacements.slice(0, maxTold).map(({ record }) => recallIdOf(record.number));
    const tokens = Math.round(replacements.reduce((sum, { record }) => sum + record.tokens, 0));
    this.#host.notify("pruning/changed", { cause: "strategies", blocks: [], pruned, tokens });
  }
}

/** Whether the session's file contains it. */
export function isWritten(
  { record, targetId }: Replacement,
  { recall }: Pick<PruningServices, "recall">,
  sessionManager: ExtensionContext["sessionManager"],
): boolean {
  return recall.registry
    .ofEntry(targetId, sessionManager)
    .some(({ number, part }) => number === record.number && part === record.part);
}
