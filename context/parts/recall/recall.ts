import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { SessionEntry } from "../../../extension/pi-types.ts";
import { RECALL_TOOL } from "../../../protocol/optimisation/config.ts";
import { contentOf, fromBlocks, type Recalled } from "./content.ts";
import { othersEdit } from "./edits.ts";
import type { PendingCuts } from "./pending-cuts.ts";
import { cutData, numberOf, RECALL_MARK, recallIdOf } from "./record.ts";
import { type HeldRecord, RecallRegistry } from "./registry.ts";
import { readSpilled } from "./spill.ts";
import { type Recaller, recallTool } from "./tool.ts";

/** A masked or cut output. */
export interface Masked {
  readonly recallId: string;
  readonly tool: string;
  readonly tokens: number;
  /** `masking`, `toolResults`, or a strategy of pruning. */
  readonly part: string;
  /** Answers since the removal: the number of requests that saved its tokens. */
  readonly requests: number;
}

/** Removed content and access to it, shared by all parts that remove content. */
export interface Recall {
  readonly registry: RecallRegistry;
  /** Registers a condition under which the tool is needed. */
  need(isNeeded: () => boolean): void;
  /** Adds a source that resolves another kind of id. */
  addSource(recaller: Recaller): void;
  /** Why no content may be removed now, because the model could not recall it. `undefined`: the tool is available. */
  missing(): string | undefined;
  /** Number of calls of the tool in the whole file. */
  asked(ctx: ExtensionContext): number;
  /** The masked or cut outputs in the session's context now, oldest first. */
  masked(ctx: ExtensionContext): Masked[];
}

export interface RecallNeeds {
  readonly pi: Pick<ExtensionAPI, "getAllTools" | "getActiveTools" | "registerTool" | "appendEntry">;
  readonly cuts: PendingCuts;
  readonly spillDirectory: () => string | undefined;
}

/** Registers the tool as soon as a part needs it, unless another extension has a tool with that name. */
export function createRecall(
  { onSession, on, boundary }: Pick<HostPort, "onSession" | "on" | "boundary">,
  { pi, cuts, spillDirectory }: RecallNeeds,
): Recall {
  const registry = new RecallRegistry(cuts);
  const needs: (() => boolean)[] = [];
  const sources: Recaller[] = [
    async (id, { sessionManager }) => {
      const number = numberOf(id);
      const record = number === undefined ? undefined : registry.find(number, sessionManager);
      if (record === undefined) return undefined;
      const { place } = record;
      const shown = place.kind === "entry" ? place.entryId : record.heldBy;
      const edit = othersEdit(shown, recallIdOf(record.number), sessionManager);
      // Content that another extension removed, such as a secret, is not returned.
      if (edit !== undefined) return edit.replacement === null ? undefined : fromBlocks(edit.replacement.content);
      if (place.kind === "entry") return contentOf(sessionManager.getEntry(place.entryId));
      const directory = spillDirectory();
      const text = directory === undefined ? undefined : await readSpilled(directory, place);
      if (text === undefined) return undefined;
      // The file has the text; images stay in the entry, unless it was masked later.
      return { text, images: contentOf(sessionManager.getEntry(record.heldBy))?.images ?? [] };
    },
  ];
  const recall: Recaller = async (id, ctx): Promise<Recalled | undefined> => {
    for (const source of sources) {
      const found = await source(id, ctx);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  let state: "none" | "ours" | "theirs" = "none";
  const provide = (ctx: ExtensionContext): void => {
    if (state === "ours") return;
    if (!needs.some((isNeeded) => isNeeded()) && registry.all(ctx.sessionManager).length === 0) return;
    // Our tool would hide another one: pi uses the first of a name.
    state = pi.getAllTools().some(({ name }) => name === RECALL_TOOL) ? "theirs" : "ours";
    if (state === "ours") pi.registerTool(recallTool(recall));
  };
  onSession(provide, "recall");
  on("recall", "before_agent_start", (_event, ctx) => provide(ctx));
  on("recall", "agent_start", (_event, ctx) => provide(ctx));
  const unrecorded = ({ sessionManager }: ExtensionContext): object | undefined => {
    const records = registry.unrecorded(sessionManager);
    return records.length === 0 ? undefined : cutData("toolResults", records);
  };
  boundary.contribute("recall", ({ ctx }) => {
    const data = unrecorded(ctx);
    return data === undefined ? undefined : { drafts: [{ type: "custom", customType: RECALL_MARK, data }] };
  });
  // An aborted run may have had no accepted boundary.
  on("recall", "agent_settled", (_event, ctx) => {
    const data = unrecorded(ctx);
    if (data !== undefined) pi.appendEntry(RECALL_MARK, data);
  });

  return {
    registry,
    need: (isNeeded) => void needs.push(isNeeded),
    addSource: (source) => void sources.push(source),
    missing: () => {
      if (state === "theirs") return "Another extension has a tool named recall.";
      return pi.getActiveTools().includes(RECALL_TOOL) ? undefined : "The tool recall is not active.";
    },
    masked: (ctx) => maskedIn(registry, ctx),
    asked: ({ sessionManager }) => {
      const isAnswer = (entry: SessionEntry): boolean =>
        entry.type === "message" && entry.message.role === "toolResult" && entry.message.toolName === RECALL_TOOL;
      return sessionManager.getEntries().filter(isAnswer).length;
    },
  };
}

function maskedIn(registry: RecallRegistry, { sessionManager }: ExtensionContext): Masked[] {
  const branch = sessionManager.getBranch();
  const place = new Map(branch.map(({ id }, at) => [id, at]));
  const visible = new Set(sessionManager.buildSessionProjection().entries.map(({ sourceEntry }) => sourceEntry.id));
  const answersBefore: number[] = [];
  let answers = 0;
  for (const entry of branch) {
    answersBefore.push(answers);
    if (entry.type === "message" && entry.message.role === "assistant") answers += 1;
  }
  const isShown = ({ heldBy, place: where }: HeldRecord): boolean =>
    place.has(heldBy) && visible.has(where.kind === "entry" ? where.entryId : heldBy);
  const shown = registry.all(sessionManager).filter(isShown);
  // After a crash between a record and its edit, the same removal is recorded twice.
  return [...new Map(shown.map((record) => [`${record.number} ${record.part}`, record])).values()]
    .toSorted((a, b) => a.number - b.number)
    .map(({ number, tool, tokens, part, heldBy }) => ({
      recallId: recallIdOf(number),
      tool,
      tokens,
      part,
      requests: answers - (answersBefore[place.get(heldBy) ?? 0] ?? answers),
    }));
}
