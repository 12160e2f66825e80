import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { AnswerHead, Progress, TextItem, ThoughtItem } from "../../state/items.ts";
import { type CodeProps, Markdown } from "../../text/markdown.tsx";
import { Visible } from "../../text/visible.tsx";
import { loadedPlaces } from "../loaded.ts";
import { Copy } from "../widgets/copy.tsx";
import { Icon } from "../widgets/icon.tsx";
import { Time } from "../widgets/time.tsx";
import { More } from "./long-text.tsx";

/** Who answers, above the first part of an answer. */
export function Head({ head }: { readonly head: AnswerHead | undefined }): JSX.Element | null {
  if (head === undefined) return null;
  return (
    <header class="item-head head-of-answer">
      <strong>
        <bdi>{head.model}</bdi>
      </strong>
      <Time at={head.at} />
    </header>
  );
}

export function Answer({ item }: { readonly item: TextItem }): JSX.Element {
  return (
    <>
      <Head head={item.head} />
      <div class={item.progress === "streaming" ? "is-writing" : undefined}>
        <Markdown blocks={item.blocks} code={CodeBlock} isGrowing={item.progress === "streaming"} />
      </div>
      <More text={item.text} />
      <Unfinished progress={item.progress} />
      <Copy what="this answer" text={() => item.text.text.value} />
    </>
  );
}

function CodeBlock({ text, language, isComplete }: CodeProps): JSX.Element {
  const element = useRef<HTMLElement>(null);
  const places = loadedPlaces.value;
  useEffect(
    () => places?.colourInView(element.current, { text, language, isComplete }),
    [places, text, language, isComplete],
  );
  return (
    <div class="code">
      <pre tabIndex={0}>
        <code ref={element}>
          <Visible text={text} />
        </code>
      </pre>
      <Copy what="this code" text={() => text} />
    </div>
  );
}

/** A thought, folded to one line. */
export function Thought({ item }: { readonly item: ThoughtItem }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const text = item.text.text.value;
  const word = item.progress === "streaming" ? "Thinking" : "Thought";
  if (item.isRedacted)
    return (
      <>
        <Head head={item.head} />
        <p>{word}, not shown by the provider</p>
      </>
    );
  return (
    <>
      <Head head={item.head} />
      <details class="fold" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <Icon name="chevron" tone="chevron" />
          <b>{word}</b>
          {!isOpen && <span class="cut">{text.slice(0, 300)}</span>}
        </summary>
        {isOpen && (
          <div class="thought-text">
            {text}
            <More text={item.text} />
          </div>
        )}
      </details>
    </>
  );
}

function Unfinished({ progress }: { readonly progress: Progress }): JSX.Element | null {
  if (progress === "whole" || progress === "streaming") return null;
  return (
    <p class="quiet">{progress === "cut" ? "It ends here: the message was cut." : "Some live text was left out…"}</p>
  );
}
