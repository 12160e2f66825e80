import { type ReadonlySignal, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect } from "preact/hooks";

/** This near to the end, in CSS pixels, is at the end. */
const nearEnd = 24;

interface Following {
  /** Whether the view stays at the end when something comes. */
  readonly isFollowing: ReadonlySignal<boolean>;
  toEnd(): void;
}

/** Keeps a scrolled box at its end while it is there. A person who scrolls up ends that; coming back to the end resumes it. */
export function useFollowing(box: RefObject<HTMLElement | null>, content: RefObject<HTMLElement | null>): Following {
  const isFollowing = useSignal(true);
  const toEnd = (): void => {
    isFollowing.value = true;
    const { current } = box;
    if (current !== null) current.scrollTop = current.scrollHeight;
  };
  useEffect(() => {
    const { current: element } = box;
    if (element === null || content.current === null) return;
    let before = element.scrollTop;
    const onScroll = (): void => {
      const { scrollTop, scrollHeight, clientHeight } = element;
      if (scrollHeight - scrollTop - clientHeight < nearEnd) isFollowing.value = true;
      // What grew since our own scrolling is no person's scrolling: only a move upwards is.
      else if (scrollTop < before - 1) isFollowing.value = false;
      before = scrollTop;
    };
    const size = new ResizeObserver(() => {
      if (isFollowing.peek()) toEnd();
    });
    size.observe(element);
    size.observe(content.current);
    element.addEventListener("scroll", onScroll, { passive: true });
    toEnd();
    return () => {
      size.disconnect();
      element.removeEventListener("scroll", onScroll);
    };
  }, []);
  return { isFollowing, toEnd };
}
