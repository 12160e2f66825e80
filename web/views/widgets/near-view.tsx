import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { buildSoon } from "./build-queue.ts";

/** A part is built while it is this near the view, in CSS pixels. */
const near = 1_500;

interface NearViewProps {
  /** What scrolls. */
  readonly box: () => HTMLElement | null;
  /** Its height in CSS pixels, about, as long as it was never built. */
  readonly height: number;
  /** For `data-part`, by which it is found while it is not built. */
  readonly id?: string;
  /** Whether it is built at first. */
  readonly isBuilt: boolean;
  children(): ComponentChildren;
}

/** A part of a long list. Far from the view only its height is there. */
export function NearView({ box, height, id, isBuilt: isBuiltAtFirst, children }: NearViewProps): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const isBuilt = useSignal(isBuiltAtFirst);
  const lastHeight = useRef<number | undefined>(undefined);
  useEffect(() => {
    const { current: part } = element;
    const root = box();
    if (part === null || root === null) return;
    let forget = (): void => {};
    // What is in view keeps its place when a part above it changes its height, if the browser does not hold on to that part.
    const holds = (value: boolean): void => {
      part.style.overflowAnchor = value ? "" : "none";
    };
    const build = (): void => {
      isBuilt.value = true;
      requestAnimationFrame(() => holds(isBuilt.value));
    };
    holds(isBuilt.value);
    const observer = new IntersectionObserver(
      (entries) => {
        const isNear = entries.at(-1)?.isIntersecting === true;
        forget();
        if (isNear === isBuilt.value) return;
        if (isNear) forget = buildSoon({ part, box: root, build });
        else if (!part.contains(document.activeElement)) {
          lastHeight.current = part.offsetHeight;
          isBuilt.value = false;
          holds(false);
        }
      },
      { root, rootMargin: `${near}px 0px` },
    );
    observer.observe(part);
    return () => {
      forget();
      observer.disconnect();
    };
  }, []);
  return (
    <div
      ref={element}
      class="group"
      data-part={id}
      style={isBuilt.value ? undefined : { height: `${lastHeight.current ?? height}px` }}
    >
      {isBuilt.value && children()}
    </div>
  );
}
