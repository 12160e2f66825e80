import { isRecord } from "../../protocol/objects.ts";
import type { ContextItem, ContextPart, ContextTarget, RepairCode } from "./document.ts";
import { grouped } from "./faults.ts";
import { setField } from "./measure.ts";
import { decodedBytes } from "./read-parts.ts";

/** Image types that the services accept. */
const takenImages: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);
const deepest = 128;

/** Records a repair of one item. */
export type NoteItem = (code: RepairCode, detail: string) => void;

export interface ContentRules {
  /** Whether an item's message is the target's own, which is sent unchanged if it is valid Unicode. */
  readonly isOwn: boolean;
  readonly target: ContextTarget;
  readonly note: NoteItem;
  /** Name of the item as the start of a sentence. */
  readonly name: string;
}

/**
 * Returns the parts that the message may have: no blank text, reasoning only of the target, images only where allowed.
 */
export function soundParts(item: ContextItem, rules: ContentRules): readonly ContextPart[] {
  const mayHaveImages = item.role !== "assistant" && item.role !== "system" && rules.target.takesImages;
  let isChanged = false;
  const parts: ContextPart[] = [];
  for (const part of item.content) {
    const sound = soundPart(part, mayHaveImages, rules);
    if (sound !== part) isChanged = true;
    if (sound !== undefined) parts.push(sound);
  }
  return isChanged ? parts : item.content;
}

function soundPart(part: ContextPart, mayHaveImages: boolean, rules: ContentRules): ContextPart | undefined {
  const { isOwn, note } = rules;
  if (part.type === "text") {
    if (isBlank(part.text)) return undefined;
    const text = wellFormed(part.text, rules);
    return text === part.text ? part : { type: "text", text };
  }
  if (part.type === "reasoning") {
    if (isOwn) return wellFormedJson(part, rules);
    note("foreign_reasoning", `${rules.name} has reasoning of another model.`);
    return undefined;
  }
  if (mayHaveImages && takenImages.has(part.mimeType)) return part;
  note("image_left_out", `${rules.name} has an image that the model cannot be given there.`);
  return { type: "text", text: `[Image left out: ${part.mimeType}, ${grouped(decodedBytes(part.data))} bytes]` };
}

/** Whether a text is only white space, which services refuse like an empty one. */
export function isBlank(text: string): boolean {
  return text.trim() === "";
}

function wellFormed(text: string, rules: ContentRules): string {
  if (text.isWellFormed()) return text;
  rules.note("lone_surrogate", `${rules.name} has text that is not Unicode.`);
  return text.toWellFormed();
}

/** Returns the value with all texts well-formed; the value itself if they already are. */
export function wellFormedJson<T>(value: T, rules: ContentRules): T {
  if (isWellFormedJson(value, deepest)) return value;
  rules.note("lone_surrogate", `${rules.name} has text that is not Unicode.`);
  return repairedValue(value, deepest) as T;
}

function isWellFormedJson(value: unknown, levels: number): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (typeof value !== "object" || value === null || levels === 0) return true;
  if (Array.isArray(value)) return value.every((element) => isWellFormedJson(element, levels - 1));
  return Object.keys(value).every(
    (key) => key.isWellFormed() && isWellFormedJson((value as Record<string, unknown>)[key], levels - 1),
  );
}

function repairedValue(value: unknown, levels: number): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (typeof value !== "object" || value === null || levels === 0) return value;
  if (Array.isArray(value)) return value.map((element) => repairedValue(element, levels - 1));
  if (!isRecord(value)) return value;
  const whole: Record<string, unknown> = {};
  const tried = new Map<string, number>();
  for (const key of Object.keys(value)) {
    const name = key.toWellFormed();
    setField(whole, name === key ? key : freeName(name, whole, value, tried), repairedValue(value[key], levels - 1));
  }
  return whole;
}

/** Numbers names that have become equal. */
function freeName(name: string, taken: object, given: object, tried: Map<string, number>): string {
  let next = name;
  for (let number = (tried.get(name) ?? 1) + 1; Object.hasOwn(taken, next) || Object.hasOwn(given, next); number += 1) {
    tried.set(name, number);
    next = `${name}-${number}`;
  }
  return next;
}
