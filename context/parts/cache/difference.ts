import { isRecord } from "../../../protocol/objects.ts";
import { isDeferred, MARK, type PayloadView, toolName } from "./payload.ts";

/** The first place where a request is not an extension of the previous one. */
export type Difference =
  | { readonly place: "tools"; readonly how: "set" | "order" }
  | { readonly place: "system" }
  /** `index`: after the prompt, from 0. */
  | { readonly place: "message"; readonly index: number }
  | { readonly place: "settings" };

type Fields = Readonly<Record<string, unknown>>;

/** Deeper values count as different. */
const maxDepth = 64;

/** Compares like services do: cache marks are ignored, because they move from request to request. */
export function firstDifference(before: PayloadView, now: PayloadView): Difference | undefined {
  const how = toolDifference(before.tools, now.tools);
  if (how !== undefined) return { place: "tools", how };
  if (!isSameContent(before.system, now.system)) return { place: "system" };
  for (const [index, message] of before.messages.entries()) {
    const isLast = index === before.messages.length - 1;
    const other = now.messages[index];
    if (!isSame(message, other, 0) && !(isLast && hasGrown(message, other))) return { place: "message", index };
  }
  return isSame(before.settings, now.settings, 0) ? undefined : { place: "settings" };
}

function toolDifference(before: readonly unknown[], now: readonly unknown[]): "set" | "order" | undefined {
  const shared = Math.min(before.length, now.length);
  const isPrefix = before.slice(0, shared).every((tool, at) => isSame(tool, now[at], 0));
  const [longer, rest] = before.length > now.length ? [before, before.slice(shared)] : [now, now.slice(shared)];
  if (isPrefix && (longer.length === shared || rest.every(isDeferred))) return undefined;
  if (before.length !== now.length) return "set";
  const named = new Map(now.map((tool) => [toolName(tool), tool]));
  return before.every((tool) => isSame(tool, named.get(toolName(tool)), 0)) ? "order" : "set";
}

/** Whether the last message only grew at its end, because call results are appended to one message. */
function hasGrown(before: unknown, now: unknown): boolean {
  if (!isRecord(before) || !isRecord(now) || before["role"] !== now["role"]) return false;
  const [old, fresh] = [before, now].map((message) => blocksOf(message["content"] ?? message["parts"]));
  if (old === undefined || fresh === undefined) return false;
  if (old.length === 0 || old.length >= fresh.length) return false;
  return old.every((block, at) => isSame(block, fresh[at], 0));
}

function isSame(a: unknown, b: unknown, depth: number): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null || depth > maxDepth) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let at = 0; at < a.length; at += 1) if (!isSame(a[at], b[at], depth + 1)) return false;
    return true;
  }
  return !Array.isArray(b) && hasSameFields(a as Fields, b as Fields, depth);
}

function hasSameFields(a: Fields, b: Fields, depth: number): boolean {
  let fields = 0;
  for (const key in a) {
    if (key === MARK || a[key] === undefined) continue;
    fields += 1;
    const isIt = key === "content" ? isSameContent(a[key], b[key], depth + 1) : isSame(a[key], b[key], depth + 1);
    if (!isIt) return false;
  }
  for (const key in b) if (key !== MARK && b[key] !== undefined) fields -= 1;
  return fields === 0;
}

/** Treats a text and its single-block form as equal, because pi converts between them when a mark moves. */
function isSameContent(a: unknown, b: unknown, depth = 0): boolean {
  if (typeof a === "string" && typeof b === "string") return a === b;
  if (typeof a === "string" || typeof b === "string") return isSame(blocksOf(a), blocksOf(b), depth + 1);
  return isSame(a, b, depth);
}

function blocksOf(content: unknown): readonly unknown[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}
