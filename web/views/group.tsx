import { useSignal } from "@preact/signals";
import type { JSX, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { RowGroup } from "../state/items.ts";
import { RowView } from "./items/row.tsx";

/** A group is built while it is this near the view, in CSS pixels. */
const near = 1_500;

/** The height of a row that was never built, about. */
const rowHeight = 44;

interface GroupProps {
  readonly group: RowGroup;
  readonly log: RefObject<HTMLElement | null>;
  readonly opensChanges: boolean;
  /** Whether it is at the end, where the view begins. */
  readonly isAtEnd: boolean;
}

/** Up to 50 rows. Far from the view only their height is there. */
export function GroupOfRows({ group, log, opensChanges, isAtEnd }: GroupProps): JSX.Element {
  const element = useRef<HTMLDivElement>(null);
  const isBuilt = useSignal(isAtEnd);
  const height = useRef(rowHeight * group.rows.peek().length);
  useEffect(() => {
    const { current: box } = element;
    if (box === null) return;
    const observer = new IntersectionObserver(
      (entries) => {
        const isNear = entries.at(-1)?.isIntersecting === true;
        if (!isNear && isBuilt.value) {
          if (box.contains(document.activeElement)) return;
          height.current = box.offsetHeight;
        }
        isBuilt.value = isNear;
      },
      { root: log.current, rootMargin: `${near}px 0px` },
    );
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return (
    <div ref={element} class="group" {...(isBuilt.value ? {} : { style: { height: `${height.current}px` } })}>
      {isBuilt.value && group.rows.value.map((row) => <RowView key={row.id} row={row} opensChanges={opensChanges} />)}
    </div>
  );
}
