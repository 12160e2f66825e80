import type { JSX } from "preact";
import type { Item, Row } from "../../state/items.ts";
import { Answer, Thought } from "./answer.tsx";
import { Gap } from "./gap.tsx";
import { Note } from "./note.tsx";
import { Push } from "./push.tsx";
import { Tool } from "./tool.tsx";
import { UserMessage } from "./user.tsx";

interface RowProps {
  readonly row: Row;
  /** Whether tools that change files begin open. */
  readonly opensChanges: boolean;
}

/** One row of a conversation. Enter opens and folds what can be folded. */
export function RowView({ row, opensChanges }: RowProps): JSX.Element {
  const item = row.item.value;
  return (
    <article
      class={`item ${item.kind}`}
      data-row={row.id}
      tabIndex={-1}
      data-delivery={item.kind === "push" ? item.deliveryId : undefined}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || event.target !== event.currentTarget || event.repeat) return;
        event.currentTarget.querySelector<HTMLElement>("summary, .to-timeline")?.click();
      }}
    >
      <Content item={item} opensChanges={opensChanges} />
    </article>
  );
}

function Content({ item, opensChanges }: { readonly item: Item; readonly opensChanges: boolean }): JSX.Element {
  switch (item.kind) {
    case "user":
      return <UserMessage item={item} />;
    case "text":
      return <Answer item={item} />;
    case "thought":
      return <Thought item={item} />;
    case "tool":
      return <Tool item={item} beginsOpen={opensChanges && item.isChange} />;
    case "push":
      return <Push item={item} />;
    case "note":
      return <Note item={item} />;
    case "gap":
      return <Gap item={item} />;
  }
}
