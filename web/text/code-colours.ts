import { isKnownLanguage, type Token, type TokenKind, tokenKinds, tokensOf } from "./code-tokens.ts";

// Code gets its colours by ranges that the browser paints as the styles say. Not one element is added.

/** After so long no other piece is begun, in milliseconds, so that the page is held up for about 8 at a time. */
const sliceMs = 5;

const highlights = new Map(tokenKinds.map((kind) => [kind, new Highlight()]));
for (const [kind, highlight] of highlights) CSS.highlights.set(`code-${kind}`, highlight);

interface Work {
  readonly pieces: Iterator<readonly Token[]>;
  paint(tokens: readonly Token[]): void;
}

/** Codes that wait for their colours; the first can have some of them. */
const waiting = new Set<Work>();
let isTimed = false;

/**
 * Colours the text of an element soon. Returns what takes the colours away. Code in an unknown language stays plain, and code
 * with names of characters that one cannot see, because it has other characters than it shows.
 */
export function colour(element: Element, language: string): () => void {
  const text = textOf(element);
  if (text === undefined || !isKnownLanguage(language)) return () => {};
  const ranges: (readonly [kind: TokenKind, range: StaticRange])[] = [];
  const work: Work = {
    pieces: tokensOf(text.data, language),
    paint: (tokens) => {
      for (const { kind, start, end } of tokens) {
        const range = new StaticRange({ startContainer: text, startOffset: start, endContainer: text, endOffset: end });
        highlights.get(kind)?.add(range);
        ranges.push([kind, range]);
      }
    },
  };
  waiting.add(work);
  if (!isTimed) setTimeout(colourSome);
  isTimed = true;
  return () => {
    waiting.delete(work);
    for (const [kind, range] of ranges.splice(0)) highlights.get(kind)?.delete(range);
  };
}

function colourSome(): void {
  const until = performance.now() + sliceMs;
  for (const work of waiting) {
    for (;;) {
      const { value, done } = work.pieces.next();
      if (done === true) break;
      work.paint(value);
      if (performance.now() < until) continue;
      setTimeout(colourSome);
      return;
    }
    waiting.delete(work);
  }
  isTimed = false;
}

/** The only text in an element. */
function textOf(element: Element): Text | undefined {
  const texts = element.firstElementChild?.childNodes;
  const only = texts?.length === 1 ? texts[0] : undefined;
  return only instanceof Text ? only : undefined;
}
