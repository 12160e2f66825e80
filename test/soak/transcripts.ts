import { existsSync, readFileSync } from "node:fs";
import { DELIVERY_MARK } from "../../protocol/link.ts";
import type { EntryFact } from "./history.ts";

interface Line {
  readonly type?: unknown;
  readonly id?: unknown;
  readonly parentId?: unknown;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The entries of pi's session file that carry a push, on all branches. Lines that are not valid JSON are skipped. */
export function entriesOf(file: string): readonly EntryFact[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").split("\n").flatMap(parsed);
  const byId = new Map(lines.map((line) => [line.id, line]));
  const active = new Set<unknown>();
  for (let at = lines.at(-1); at !== undefined && !active.has(at.id); at = byId.get(at.parentId)) active.add(at.id);
  return lines.flatMap((line) => {
    const mark = line.details?.[DELIVERY_MARK] as { readonly deliveryId?: unknown } | undefined;
    if (line.type !== "custom_message" || typeof mark?.deliveryId !== "string") return [];
    return [{ deliveryId: mark.deliveryId, file, entryId: String(line.id), onActiveBranch: active.has(line.id) }];
  });
}

function parsed(line: string): Line[] {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? [value] : [];
  } catch {
    return [];
  }
}
