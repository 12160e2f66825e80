import { type ReadonlySignal, useComputed, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

/** Rounding of positions, in CSS pixels. */
const tolerance = 2;

/**
 * Whether the whole text of a box was on screen: each part of it, from its beginning to its end. A jump to the end skips
 * what is between. Counts only while the box itself is in view and the page is visible.
 */
export function useReadWhole(box: RefObject<HTMLElement | null>): ReadonlySignal<boolean> {
  const isInView = useSignal(false);
  const isRead = useSignal(false);
  useEffect(() => {
    const { current: element } = box;
    if (element === null) return;
    let readUntil = 0;
    const look = (): void => {
      const { scrollTop, clientHeight, scrollHeight } = element;
      if (!isInView.value || document.visibilityState !== "visible" || scrollTop > readUntil + tolerance) return;
      readUntil = Math.max(readUntil, scrollTop + clientHeight);
      if (readUntil >= scrollHeight - tolerance) isRead.value = true;
    };
    const inView = new IntersectionObserver(
      (entries) => {
        isInView.value = (entries.at(-1)?.intersectionRatio ?? 0) >= 0.99;
        look();
      },
      { threshold: [0, 0.5, 0.99, 1] },
    );
    const size = new ResizeObserver(look);
    inView.observe(element);
    size.observe(element);
    element.addEventListener("scroll", look);
    document.addEventListener("visibilitychange", look);
    return () => {
      inView.disconnect();
      size.disconnect();
      element.removeEventListener("scroll", look);
      document.removeEventListener("visibilitychange", look);
    };
  }, []);
  return useComputed(() => isRead.value);
}
