import type { Page } from "./page.ts";

/**
 * Calls `begin` when the page is visible, now or later, and what it returned when the page is hidden or the returned
 * function is called.
 */
export function whileVisible(page: Page, begin: () => () => void): () => void {
  let end: (() => void) | undefined;
  const change = (): void => {
    if (page.isHidden) {
      end?.();
      end = undefined;
    } else end ??= begin();
  };
  change();
  const unwatch = page.onVisibility(change);
  return () => {
    unwatch();
    end?.();
    end = undefined;
  };
}
