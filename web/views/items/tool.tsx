import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { LongText, ToolItem, ToolState } from "../../state/items.ts";
import { Visible } from "../../text/visible.tsx";
import { Copy } from "../widgets/copy.tsx";
import { Icon, type IconName } from "../widgets/icon.tsx";
import { durationWords } from "../widgets/time.tsx";
import { Head } from "./answer.tsx";
import { Diff } from "./diff.tsx";
import { More } from "./long-text.tsx";
import { Pictures } from "./pictures.tsx";

interface Sign {
  readonly icon: IconName;
  readonly tone: string;
  readonly word: string;
}

const signs: Readonly<Record<ToolState, Sign>> = {
  writing: { icon: "running", tone: "is-accent", word: "being written" },
  called: { icon: "wait", tone: "quiet", word: "waits" },
  running: { icon: "running", tone: "is-accent", word: "running" },
  done: { icon: "check", tone: "is-good", word: "" },
  failed: { icon: "cross", tone: "is-bad", word: "failed" },
  lost: { icon: "failed", tone: "is-warn", word: "never ended" },
};

/** Shorter calls say nothing about their time. */
const slowMs = 1_000;

interface ToolProps {
  readonly item: ToolItem;
  readonly beginsOpen: boolean;
}

/** A call of a tool: one line, open for what it got and returned. */
export function Tool({ item, beginsOpen }: ToolProps): JSX.Element {
  const [isOpen, setOpen] = useState(beginsOpen);
  const { icon, tone, word } = signs[item.state];
  return (
    <>
      <Head head={item.head} />
      <details class="fold tool-box" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <Icon name={icon} tone={tone} />
          <strong>
            <bdi>{item.name}</bdi>
          </strong>
          <span class="tool-what mono cut">
            <Visible text={item.what} />
          </span>
          <Outcome item={item} />
          {word !== "" && <span class={tone}>{word}</span>}
          <Icon name="chevron" tone="chevron" />
        </summary>
        {isOpen && <Body item={item} />}
      </details>
    </>
  );
}

function Outcome({ item }: { readonly item: ToolItem }): JSX.Element {
  const { added, removed, startedAt, endedAt, output } = item;
  const took = startedAt !== undefined && endedAt !== undefined ? endedAt - startedAt : 0;
  const isRead = item.state === "done" && item.diff === undefined && output !== undefined && output.missing.value === 0;
  return (
    <span class="outcome quiet">
      {item.isOfUser && <span class="tag">yours</span>}
      {isRead && linesWords(output.text.value)}
      {added !== undefined && <span class="is-good">+{added}</span>}
      {removed !== undefined && <span class="is-bad">−{removed}</span>}
      {took >= slowMs && <span>{durationWords(took)}</span>}
    </span>
  );
}

function linesWords(text: string): string {
  if (text === "") return "";
  const lines = text.replace(/\n$/, "").split("\n").length;
  return lines === 1 ? "1 line" : `${lines} lines`;
}

function Body({ item }: { readonly item: ToolItem }): JSX.Element {
  return (
    <div class="tool-body">
      {item.diff !== undefined && (
        <Part title="Changes" text={item.diff}>
          <Diff text={item.diff.text.value} />
        </Part>
      )}
      <Part title="Arguments" text={item.args}>
        <pre class="output wrap" tabIndex={0}>
          <Visible text={item.args.text.value} />
        </pre>
      </Part>
      {item.output !== undefined && (
        <Part title={item.state === "failed" ? "Error" : "Output"} text={item.output}>
          <pre class="output" tabIndex={0}>
            {item.output.text.value}
          </pre>
        </Part>
      )}
      <Pictures pictures={item.pictures} />
    </div>
  );
}

interface PartProps {
  readonly title: string;
  readonly text: LongText;
  readonly children: JSX.Element;
}

function Part({ title, text, children }: PartProps): JSX.Element {
  return (
    <section class="tool-part">
      <header class="item-head">
        <h3>{title}</h3>
        <Copy what={title.toLowerCase()} text={() => text.text.value} />
      </header>
      {children}
      <More text={text} />
    </section>
  );
}
