import type { JSX, RefObject } from "preact";
import type { RowGroup } from "../state/items.ts";
import { RowView } from "./items/row.tsx";
import { NearView } from "./widgets/near-view.tsx";

/** The height of a row that was never built, about. */
const rowHeight = 44;

interface GroupProps {
  readonly group: RowGroup;
  readonly log: RefObject<HTMLElement | null>;
  readonly opensChanges: boolean;
  /** Whether the view begins at it: it is built at first. */
  readonly isInView: boolean;
}

/** Up to ten rows of a conversation. */
export function GroupOfRows({ group, log, opensChanges, isInView }: GroupProps): JSX.Element {
  return (
    <NearView box={() => log.current} height={rowHeight * group.rows.peek().length} id={group.id} isBuilt={isInView}>
      {() => group.rows.value.map((row) => <RowView key={row.id} row={row} opensChanges={opensChanges} />)}
    </NearView>
  );
}
