import { Lexer, type MarkedToken, type Token, Tokenizer, type Tokens } from "marked";
import { type Address, addressOf } from "./address.ts";
import { resolveEntities } from "./entities.ts";

// What Markdown becomes: a closed list. Everything else is shown as it was written.

export type Inline =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "code"; readonly text: string }
  | { readonly kind: "break" }
  | { readonly kind: "strong" | "em" | "del"; readonly children: readonly Inline[] }
  | {
      readonly kind: "link";
      readonly address: Address;
      readonly isImage: boolean;
      readonly children: readonly Inline[];
    };

export type Align = "left" | "center" | "right" | undefined;

export interface Cell {
  readonly align: Align;
  readonly children: readonly Inline[];
}

export interface ListEntry {
  /** Undefined: no task. */
  readonly isDone?: boolean;
  readonly children: readonly BlockNode[];
}

export type BlockNode =
  | { readonly kind: "paragraph"; readonly children: readonly Inline[] }
  | { readonly kind: "heading"; readonly level: 1 | 2 | 3 | 4 | 5 | 6; readonly children: readonly Inline[] }
  | { readonly kind: "code"; readonly language: string | undefined; readonly text: string }
  | { readonly kind: "quote"; readonly children: readonly BlockNode[] }
  /** `start`: the number of the first entry; undefined: they have no numbers. */
  | { readonly kind: "list"; readonly start: number | undefined; readonly entries: readonly ListEntry[] }
  | { readonly kind: "table"; readonly head: readonly Cell[]; readonly rows: readonly (readonly Cell[])[] }
  | { readonly kind: "rule" }
  /** Text that is not read as Markdown. */
  | { readonly kind: "plain"; readonly text: string };

/** How deep nodes are nested. What is deeper is shown as it was written. */
const maxDepth = 16;
const maxCells = 20_000;

/** Markdown without HTML and without definitions of links, so that no text disappears. */
class WrittenTokenizer extends Tokenizer {
  override html(): undefined {}
  override def(): undefined {}
  override reflink(): undefined {}

  /** A tag within a line is one piece of text, whatever it contains. */
  override tag(src: string): Tokens.Tag | undefined {
    const raw = this.rules.inline.tag.exec(src)?.[0];
    return raw === undefined
      ? undefined
      : { type: "html", raw, text: raw, block: false, inLink: false, inRawBlock: false };
  }
}

/** Reads a text as Markdown. Takes more than linear time, so the caller bounds the text. */
export function nodesOf(markdown: string): readonly BlockNode[] {
  try {
    // A tokenizer belongs to its lexer.
    return blockNodes(new Lexer({ gfm: true, tokenizer: new WrittenTokenizer() }).lex(markdown), 0);
  } catch {
    // The lexer calls itself for what is nested, as deep as the text says.
    return [{ kind: "plain", text: markdown }];
  }
}

function blockNodes(tokens: readonly Token[], depth: number): readonly BlockNode[] {
  return tokens.flatMap((token) => blockNode(token as MarkedToken, depth) ?? []);
}

function blockNode(token: MarkedToken, depth: number): BlockNode | undefined {
  if (depth >= maxDepth && token.type !== "space") return { kind: "plain", text: token.raw };
  switch (token.type) {
    case "space":
      return undefined;
    case "heading":
      return { kind: "heading", level: levelOf(token.depth), children: inlineNodes(token.tokens, depth) };
    case "code":
      return { kind: "code", language: languageOf(token.lang), text: token.text };
    case "blockquote":
      return { kind: "quote", children: blockNodes(token.tokens, depth + 1) };
    case "list":
      return listNode(token, depth);
    case "table":
      return tableNode(token, depth);
    case "hr":
      return { kind: "rule" };
    case "paragraph":
    case "text":
      return { kind: "paragraph", children: inlineNodes(token.tokens ?? [textToken(token.text)], depth) };
    default:
      return { kind: "plain", text: token.raw };
  }
}

function textToken(text: string): Tokens.Text {
  return { type: "text", raw: text, text };
}

function levelOf(depth: number): 1 | 2 | 3 | 4 | 5 | 6 {
  return Math.min(6, Math.max(1, depth)) as 1 | 2 | 3 | 4 | 5 | 6;
}

/** The first word after the fence, if it can be a name. */
function languageOf(lang: string | undefined): string | undefined {
  return /^[\w+#.-]{1,32}(?=\s|$)/.exec(lang ?? "")?.[0];
}

function listNode({ ordered, start, items }: Tokens.List, depth: number): BlockNode {
  return {
    kind: "list",
    start: ordered ? Number(start) : undefined,
    entries: items.map(({ task, checked, tokens }) => ({
      ...(task && { isDone: checked === true }),
      children: blockNodes(
        tokens.filter(({ type }) => type !== "checkbox"),
        depth + 1,
      ),
    })),
  };
}

function tableNode(table: Tokens.Table, depth: number): BlockNode {
  const { header, rows, raw } = table;
  if (header.length * (rows.length + 1) > maxCells) return { kind: "plain", text: raw };
  const cells = (row: readonly Tokens.TableCell[]): readonly Cell[] =>
    row.map(({ align, tokens }) => ({ align: align ?? undefined, children: inlineNodes(tokens, depth + 1) }));
  return { kind: "table", head: cells(header), rows: rows.map(cells) };
}

function inlineNodes(tokens: readonly Token[], depth: number): readonly Inline[] {
  const nodes: Inline[] = [];
  for (const token of tokens) {
    const node = inlineNode(token as MarkedToken, depth);
    const last = nodes.at(-1);
    // The lexer splits text where something could begin.
    if (node.kind === "text" && last?.kind === "text") {
      nodes[nodes.length - 1] = { kind: "text", text: last.text + node.text };
    } else nodes.push(node);
  }
  return nodes;
}

function inlineNode(token: MarkedToken, depth: number): Inline {
  if (depth >= maxDepth) return { kind: "text", text: token.raw };
  switch (token.type) {
    case "text":
      return { kind: "text", text: resolveEntities(token.text) };
    case "escape":
      return { kind: "text", text: token.text };
    case "codespan":
      return { kind: "code", text: token.text };
    case "br":
      return { kind: "break" };
    case "strong":
    case "em":
    case "del":
      return { kind: token.type, children: inlineNodes(token.tokens, depth + 1) };
    case "link":
    case "image":
      return linkNode(token, depth);
    default:
      return { kind: "text", text: token.raw };
  }
}

function linkNode(token: Tokens.Link | Tokens.Image, depth: number): Inline {
  const isLiteral = token.type === "link" && token.autolink === true;
  const address = addressOf(isLiteral ? token.href : resolveEntities(token.href));
  if (address === undefined) return { kind: "text", text: token.raw };
  if (token.type === "image") {
    return { kind: "link", address, isImage: true, children: [{ kind: "text", text: resolveEntities(token.text) }] };
  }
  const children = isLiteral ? [{ kind: "text" as const, text: token.text }] : inlineNodes(token.tokens, depth + 1);
  // A link has no link in it.
  return { kind: "link", address, isImage: false, children: children.flatMap(withoutLinks) };
}

function withoutLinks(node: Inline): readonly Inline[] {
  if (node.kind === "link") return node.children.flatMap(withoutLinks);
  return "children" in node ? [{ ...node, children: node.children.flatMap(withoutLinks) }] : [node];
}
