import { isRecord } from "../../protocol/objects.ts";

/** pi's queue of user messages; each list is in processing order. */
export interface QueuedTexts {
  readonly steering: readonly string[];
  readonly followUp: readonly string[];
}

/** One list of the queue. pi empties `steering` first. */
export type QueueKind = keyof QueuedTexts;
export const queueKinds: readonly QueueKind[] = ["steering", "followUp"];

export const emptyQueue: QueuedTexts = { steering: [], followUp: [] };

/** Reads the queue in a record of pi. */
export function queuedTexts(value: unknown): QueuedTexts {
  if (!isRecord(value)) return emptyQueue;
  return { steering: texts(value["steering"]), followUp: texts(value["followUp"]) };
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((text) => typeof text === "string") : [];
}
