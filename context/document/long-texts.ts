import { isObject, utf8Bytes } from "./measure.ts";
import type { Place } from "./place.ts";
import { decodedBytes } from "./read-parts.ts";

/**
 * Checks the length of every text in an entry, including arguments, blocks, signatures, details and meta. Only image
 * data may be longer. Throws `context_too_large`.
 */
export function checkTexts(entry: object, place: Place): void {
  const limit = place.limits.maxBlockBytes;
  const open: unknown[] = [entry];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value === "string") {
      const count = value.length * 3 <= limit ? 0 : utf8Bytes(value);
      if (count > limit)
        throw place.exceeded("A text of", { unit: "bytes", count, limit, key: "context.maxBlockBytes" });
    } else if (Array.isArray(value)) for (const element of value) open.push(element);
    else if (isObject(value))
      for (const key of Object.keys(value)) if (!isImage(value, key, place)) open.push(value[key]);
  }
}

/** Whether a field is image data within the size limit. */
function isImage({ type, data }: Readonly<Record<string, unknown>>, key: string, { limits }: Place): boolean {
  return key === "data" && type === "image" && typeof data === "string" && decodedBytes(data) <= limits.maxImageBytes;
}
