import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { NoteAbout, NoteItem, Who } from "../../state/items.ts";
import { Visible } from "../../text/visible.tsx";
import { Icon, type IconName } from "../widgets/icon.tsx";
import { Time } from "../widgets/time.tsx";
import { More } from "./long-text.tsx";

const icons: Partial<Record<NoteAbout, IconName>> = {
  compaction: "fold",
  retry: "again",
  abort: "stop",
  failure: "failed",
  block: "fold",
  question: "question",
  summary: "fold",
};

/** Something that happened between messages, and who did it. */
export function Note({ item }: { readonly item: NoteItem }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="note-line" data-tone={item.tone}>
      <Icon name={icons[item.about] ?? "info"} />
      <div class="note-text">
        <Visible text={item.words} />
        <ByWhom who={item.who} /> <Time at={item.at} />
        {item.detail !== undefined && (
          <details class="fold" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
            <summary>
              <Icon name="chevron" tone="chevron" />
              Details
            </summary>
            {isOpen && (
              <>
                <pre class="output wrap" tabIndex={0}>
                  {item.detail.text.value}
                </pre>
                <More text={item.detail} />
              </>
            )}
          </details>
        )}
      </div>
    </div>
  );
}

function ByWhom({ who }: { readonly who: Who }): JSX.Element | null {
  if (who.kind === "unknown") return null;
  return <> By {who.kind === "you" ? "you" : who.name === undefined ? "a client" : <bdi>{who.name}</bdi>}.</>;
}
