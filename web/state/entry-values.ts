import type { TranscriptCut } from "../../protocol/transcript-methods.ts";
import type { Picture } from "./items.ts";
import { type PieceReader, type Rest, restOf, type Segment } from "./long-texts.ts";
import { contentBlocks, isRecord, jsonText, textOf } from "./pi-values.ts";
import { pictureOf } from "./pictures.ts";

/** Where the values of a message or entry are, if the page may have cut some of them. */
export interface ValueSource {
  /** Names the rows that are made of it. */
  readonly key: string;
  /** Undefined: the values are whole, because an event has them. */
  readonly entryId?: string | undefined;
  /** The JSON pointer of the message in its entry. */
  readonly base: string;
  readonly cuts: readonly TranscriptCut[];
  readonly read: PieceReader;
}

/** What the session's file has of a value besides the page. Undefined: the page has all of it. */
export function missingIn({ base, cuts }: ValueSource, path: string): Rest | undefined {
  const whole = `${base}${path}`;
  const exact = cuts.find((cut) => cut.path === whole);
  if (exact !== undefined) return restOf(exact);
  // It is within something that was left out.
  const around = cuts.find((cut) => whole.startsWith(`${cut.path}/`));
  return around === undefined ? undefined : { ...restOf(around), path: whole, offset: 0 };
}

/** Whether a part of a value was cut. */
export function isCutWithin({ base, cuts }: ValueSource, path: string): boolean {
  return cuts.some((cut) => cut.path.startsWith(`${base}${path}/`));
}

export function segmentAt(source: ValueSource, path: string, text: string): Segment {
  return { text, rest: missingIn(source, path) };
}

/** The texts of a content, and other blocks as JSON. Images are {@link picturesIn}. */
export function contentSegments(source: ValueSource, content: unknown): readonly Segment[] {
  if (typeof content === "string" || content === undefined) {
    const segment = segmentAt(source, "/content", textOf(content));
    return segment.text === "" && segment.rest === undefined ? [] : [segment];
  }
  const segments: Segment[] = [];
  for (const [index, block] of contentBlocks(content).entries()) {
    if (isRecord(block) && block["type"] === "image") continue;
    if (segments.length > 0) segments.push({ text: "\n\n" });
    if (isRecord(block) && block["type"] === "text") {
      segments.push(segmentAt(source, `/content/${index}/text`, textOf(block["text"])));
    } else if (isRecord(block)) segments.push({ text: jsonText(block) });
    else segments.push(segmentAt(source, `/content/${index}`, textOf(block)));
  }
  return segments;
}

export function picturesIn(source: ValueSource, content: unknown): readonly Picture[] {
  return contentBlocks(content).flatMap((block, index) => {
    if (!isRecord(block) || block["type"] !== "image") return [];
    const { data, mimeType } = block;
    const rest = missingIn(source, `/content/${index}/data`);
    const id = `${source.key}/image-${index}`;
    return [pictureOf({ id, data: textOf(data), mimeType: textOf(mimeType), rest, read: source.read })];
  });
}
