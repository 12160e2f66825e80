import type { CodeProps } from "../text/markdown.tsx";

/** Longer code stays plain, in UTF-16 units. */
const maxChars = 20 * 1_024;

/**
 * Colours the code of an element while it is in view, until the returned function is called. What does that is loaded when a
 * code is first in view.
 */
export function colourInView(
  code: HTMLElement | null,
  { language, text, isComplete }: CodeProps,
): (() => void) | undefined {
  if (code === null || language === undefined || !isComplete || text.length > maxChars || !("highlights" in CSS))
    return;
  let end: (() => void) | undefined;
  const observer = new IntersectionObserver((entries) => {
    end?.();
    end = entries.at(-1)?.isIntersecting === true ? coloured(code, language) : undefined;
  });
  observer.observe(code);
  return () => {
    observer.disconnect();
    end?.();
  };
}

function coloured(code: HTMLElement, language: string): () => void {
  let isOn = true;
  let end: (() => void) | undefined;
  void import("../text/code-colours.ts").then(
    ({ colour }) => {
      if (isOn) end = colour(code, language);
    },
    // Without a connection it stays plain until it comes into view again.
    () => {},
  );
  return () => {
    isOn = false;
    end?.();
  };
}
