import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

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
    if (part === null) return;
    const observer = new IntersectionObserver(
      (entries) => {
        const isNear = entries.at(-1)?.isIntersecting === true;
        if (!isNear && isBuilt.value) {
          if (part.contains(document.activeElement)) return;
          lastHeight.current = part.offsetHeight;
        }
        isBuilt.value = isNear;
      },
      { root: box(), rootMargin: `${near}px 0px` },
    );
    observer.observe(part);
    return () => observer.disconnect();
  }, []);
  return (
    <div
      ref={element}
      class="group"
      data-part={id}
      {...(isBuilt.value ? {} : { style: { height: `${lastHeight.current ?? height}px` } })}
    >
      {isBuilt.value && children()}
    </div>
  );
}
