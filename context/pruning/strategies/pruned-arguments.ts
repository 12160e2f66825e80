import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { isRecord } from "../../../protocol/objects.ts";
import type { Recalled } from "../../parts/recall/content.ts";
import { numberOf, recallIdOf } from "../../parts/recall/record.ts";
import type { RecallRegistry } from "../../parts/recall/registry.ts";
import { maxArgument } from "./replacement.ts";

const maxDepth = 32;

/** A long text of a call's arguments. */
interface LongText {
  readonly name: string;
  readonly text: string;
}

/**
 * The original arguments of a mark with this id: a single text alone, several under their names. `pending`: contents by
 * entry that requests apply and that pi does not have yet.
 */
export async function prunedArguments(
  registry: RecallRegistry,
  id: string,
  { sessionManager }: ExtensionContext,
  pending: ReadonlyMap<string, readonly unknown[]>,
): Promise<Recalled | undefined> {
  const number = numberOf(id);
  const place = number === undefined ? undefined : registry.find(number, sessionManager)?.place;
  const entry = place?.kind === "entry" ? sessionManager.getEntry(place.entryId) : undefined;
  if (number === undefined || entry?.type !== "message" || entry.message.role !== "assistant") return undefined;
  const mark = `; recall ${recallIdOf(number)}]`;
  const edit = sessionManager.getBranch().findLast((one) => one.type === "context_edit" && one.targetId === entry.id);
  const shown: unknown = edit?.type === "context_edit" ? edit.replacement?.content : pending.get(entry.id);
  const isEdited = edit !== undefined || shown !== undefined;
  const texts = entry.message.content.flatMap((block, at) => {
    if (block.type !== "toolCall") return [];
    const made: unknown = Array.isArray(shown) ? shown[at] : undefined;
    const now = isRecord(made) ? made["arguments"] : undefined;
    return longTexts(block.arguments, { now, isEdited, mark, name: block.name }, 0);
  });
  const [only, ...others] = texts;
  if (only === undefined) return undefined;
  const text = others.length === 0 ? only.text : texts.map((one) => `${one.name}:\n${one.text}`).join("\n\n");
  return { text, images: [] };
}

interface Shown {
  /** The current value. */
  readonly now: unknown;
  readonly isEdited: boolean;
  readonly mark: string;
  readonly name: string;
}

function longTexts(value: unknown, current: Shown, depth: number): LongText[] {
  const { now, isEdited, mark, name } = current;
  if (typeof value === "string") {
    const isGone = !isEdited || (typeof now === "string" && now.endsWith(mark));
    return value.length > maxArgument && isGone ? [{ name, text: value }] : [];
  }
  if (depth >= maxDepth) return [];
  if (!Array.isArray(value) && !isRecord(value)) return [];
  return Object.entries(value).flatMap(([key, one]) => {
    const there = isRecord(now) || Array.isArray(now) ? (now as Readonly<Record<string, unknown>>)[key] : undefined;
    return longTexts(one, { now: there, isEdited, mark, name: `${name}.${key}` }, depth + 1);
  });
}
