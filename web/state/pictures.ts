import { signal } from "@preact/signals";
import type { Picture, PictureState } from "./items.ts";
import type { PieceReader, Rest } from "./long-texts.ts";
import { wordsOf } from "./outcome.ts";

/** Longer ones, in characters of base64, are not fetched. */
const maxChars = 32 * 1_024 * 1_024;

/** The formats that are shown, by the first bytes as Latin-1. What the message says of itself does not count. */
export function formatOf(binary: string): string | undefined {
  if (binary.startsWith("\x89PNG\r\n\x1a\n")) return "image/png";
  if (binary.startsWith("\xff\xd8\xff")) return "image/jpeg";
  if (binary.startsWith("GIF87a") || binary.startsWith("GIF89a")) return "image/gif";
  return binary.startsWith("RIFF") && binary.startsWith("WEBP", 8) ? "image/webp" : undefined;
}

/** An image of a message as base64: what the page has of it, and the rest in the session's file. */
export interface PictureSource {
  readonly id: string;
  readonly data: string;
  readonly rest?: Rest | undefined;
  readonly mimeType: string;
  readonly read: PieceReader | undefined;
}

/** The image is fetched and decoded while at least one view shows it. */
export function pictureOf(source: PictureSource): Picture {
  const state = signal<PictureState>({ kind: "away" });
  let views = 0;
  let url: string | undefined;
  const load = async (): Promise<void> => {
    state.value = { kind: "loading" };
    const loaded = await blobOf(source).catch(wordsOf);
    if (views === 0 || url !== undefined) return;
    if (typeof loaded === "string") {
      state.value = { kind: "refused", words: loaded };
      return;
    }
    url = URL.createObjectURL(loaded);
    state.value = { kind: "shown", url };
  };
  const release = (): void => {
    views -= 1;
    if (views > 0) return;
    if (url !== undefined) URL.revokeObjectURL(url);
    url = undefined;
    state.value = { kind: "away" };
  };
  return {
    id: source.id,
    mimeType: source.mimeType,
    state,
    show: () => {
      views += 1;
      if (views === 1) void load();
      let isShown = true;
      return () => {
        if (isShown) release();
        isShown = false;
      };
    },
  };
}

/** The image, or words that say why it is not shown. */
async function blobOf({ data, rest, read }: PictureSource): Promise<Blob | string> {
  if (rest !== undefined && rest.bytes > maxChars) return `The image is too large to be shown: ${rest.bytes} bytes.`;
  let base64 = data;
  for (let left = rest; left !== undefined && read !== undefined; ) {
    const { text, next } = await read(left);
    base64 += text;
    left = next === undefined ? undefined : { ...left, offset: next };
  }
  return decoded(base64);
}

function decoded(base64: string): Blob | string {
  let binary: string;
  try {
    binary = atob(base64);
  } catch {
    return "The image is damaged.";
  }
  const type = formatOf(binary);
  if (type === undefined) return "This is not a PNG, JPEG, GIF or WebP image.";
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  return new Blob([bytes], { type });
}
