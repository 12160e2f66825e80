import { Component, type ComponentChildren, type VNode } from "preact";
import { saysPlace } from "./address.ts";
import type { Block } from "./blocks.ts";
import type { BlockNode, Cell, Inline, ListEntry } from "./nodes.ts";
import { Visible } from "./visible.tsx";

// Elements of a closed list, with text as their children. The only attributes with foreign values are the address of a
// link, which was checked, and the number of a list's first entry.

export interface CodeProps {
  /** A word of ASCII. */
  readonly language: string | undefined;
  readonly text: string;
  /** Whether later text does not change it. */
  readonly isComplete: boolean;
}

/** Shows a block of code. */
export type CodeView = (props: CodeProps) => VNode;

interface MarkdownProps {
  readonly blocks: readonly Block[];
  /** Default: an element `pre`. */
  readonly code?: CodeView;
  /** Whether its last block can change. Default: it cannot. */
  readonly isGrowing?: boolean;
}

/** A text as Markdown. Only blocks that are other objects than before are drawn again. */
export function Markdown({ blocks, code = PlainCode, isGrowing = false }: MarkdownProps): VNode {
  const last = isGrowing ? blocks.at(-1) : undefined;
  return (
    <div class="markdown">
      {blocks.map((block) => (
        <BlockView key={block.index} block={block} code={code} isComplete={block !== last} />
      ))}
    </div>
  );
}

interface BlockProps {
  readonly block: Block;
  readonly code: CodeView;
  readonly isComplete: boolean;
}

class BlockView extends Component<BlockProps> {
  override shouldComponentUpdate({ block, code, isComplete }: BlockProps): boolean {
    return block !== this.props.block || code !== this.props.code || isComplete !== this.props.isComplete;
  }

  override render({ block, ...drawn }: BlockProps): ComponentChildren {
    return blockElements(block.nodes, drawn);
  }
}

function PlainCode({ text }: CodeProps): VNode {
  return (
    <pre>
      <code>
        <Visible text={text} />
      </code>
    </pre>
  );
}

type Drawn = Pick<BlockProps, "code" | "isComplete">;

/** The elements of nodes. The list is the same for the same text, so the place is the key. */
function blockElements(nodes: readonly BlockNode[], drawn: Drawn): readonly VNode[] {
  return nodes.map((node) => blockElement(node, drawn));
}

function blockElement(node: BlockNode, drawn: Drawn): VNode {
  switch (node.kind) {
    case "paragraph":
      return <p dir="auto">{inlineElements(node.children)}</p>;
    case "heading":
      return heading(node.level, inlineElements(node.children));
    case "code": {
      const { code: Code, isComplete } = drawn;
      return <Code language={node.language} text={node.text} isComplete={isComplete} />;
    }
    case "quote":
      return <blockquote>{blockElements(node.children, drawn)}</blockquote>;
    case "list":
      return list(node.start, node.entries, drawn);
    case "table":
      return table(node.head, node.rows);
    case "rule":
      return <hr />;
    case "plain":
      return (
        <p class="plain" dir="auto">
          {node.text}
        </p>
      );
  }
}

/** The page has headings of its own: those of a text begin at the third level. */
function heading(level: number, children: ComponentChildren): VNode {
  const lower = Math.min(6, level + 2);
  if (lower === 3) return <h3 dir="auto">{children}</h3>;
  if (lower === 4) return <h4 dir="auto">{children}</h4>;
  return lower === 5 ? <h5 dir="auto">{children}</h5> : <h6 dir="auto">{children}</h6>;
}

function list(start: number | undefined, entries: readonly ListEntry[], drawn: Drawn): VNode {
  const items = entries.map(({ isDone, children }, index) => (
    <li key={index} dir="auto" class={isDone === undefined ? undefined : "task"}>
      {isDone !== undefined && <span class="task-state">{isDone ? "☑ " : "☐ "}</span>}
      {blockElements(children, drawn)}
    </li>
  ));
  return start === undefined ? <ul>{items}</ul> : <ol start={start}>{items}</ol>;
}

function table(head: readonly Cell[], rows: readonly (readonly Cell[])[]): VNode {
  return (
    <div class="table" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {head.map((cell, index) => (
              <th key={index} scope="col" class={alignClass(cell)}>
                {inlineElements(cell.children)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={column} class={alignClass(cell)}>
                  {inlineElements(cell.children)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function alignClass({ align }: Cell): string | undefined {
  return align === undefined ? undefined : `align-${align}`;
}

function inlineElements(nodes: readonly Inline[]): ComponentChildren {
  return nodes.map(inlineElement);
}

function inlineElement(node: Inline): ComponentChildren {
  switch (node.kind) {
    case "text":
      return node.text;
    case "code":
      return (
        <code>
          <Visible text={node.text} />
        </code>
      );
    case "break":
      return <br />;
    case "strong":
      return <strong>{inlineElements(node.children)}</strong>;
    case "em":
      return <em>{inlineElements(node.children)}</em>;
    case "del":
      return <del>{inlineElements(node.children)}</del>;
    case "link":
      return link(node);
  }
}

function link({ address, isImage, children }: Extract<Inline, { kind: "link" }>): VNode {
  const words = wordsOf(children);
  return (
    <a href={address.href} target="_blank" rel="noopener noreferrer">
      {isImage && "Image: "}
      {words === "" ? address.place : <bdi>{inlineElements(children)}</bdi>}
      {words !== "" && !saysPlace(words, address) && (
        <span class="link-place">
          {" ("}
          <Visible text={address.place} />)
        </span>
      )}
    </a>
  );
}

function wordsOf(nodes: readonly Inline[]): string {
  return nodes
    .map((node) => ("children" in node ? wordsOf(node.children) : node.kind === "break" ? " " : node.text))
    .join("");
}
