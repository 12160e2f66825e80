/** What the state uses of the browser's page. Tests have one of their own. */
export interface Page {
  /** Unix time in milliseconds. */
  now(): number;
  /** Calls `paint` before the next frame is drawn; the returned function cancels it. A hidden page draws none. */
  frame(paint: () => void): () => void;
  readonly isHidden: boolean;
  /** Calls `listener` when the page is hidden or shown, until the returned function is called. */
  onVisibility(listener: () => void): () => void;
}

/** The page of the browser in which this module runs. */
export const browserPage: Page = {
  now: () => Date.now(),
  frame: (paint) => {
    const id = requestAnimationFrame(paint);
    return () => cancelAnimationFrame(id);
  },
  get isHidden() {
    return document.visibilityState === "hidden";
  },
  onVisibility: (listener) => {
    document.addEventListener("visibilitychange", listener);
    return () => document.removeEventListener("visibilitychange", listener);
  },
};
