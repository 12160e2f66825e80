import { type PiMessage, type Result, textOf } from "../client/index.ts";
import { isRecord } from "../protocol/objects.ts";
import { explainLogin } from "./credentials.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import type { Output, Style } from "./output.ts";
import { toolLine } from "./run-printer.ts";
import { findSession } from "./session-argument.ts";
import { oneLine, shorten, truncate } from "./text.ts";
import { withClient } from "./with-client.ts";

type Entries = Pick<Result<"session/getEntries">, "entries" | "leafId">;
type Entry = Entries["entries"][number];

/** Draws the tree of a session's entries. */
export async function tree(invocation: Invocation<"tree">): Promise<number> {
  const { options, output, env, signal } = invocation;
  const [word = ""] = invocation.arguments;
  return withClient(invocation, async (client) => {
    const { id: sessionId } = await findSession(client, word, signal);
    // The list has no limit on nesting, unlike the tree.
    const { entries, leafId } = await client.call("session/getEntries", { sessionId }, { signal });
    if (output.json) {
      const labels = [...labelsOf(entries)].map(([entryId, label]) => ({ entryId, label }));
      output.document({ leafId, labels, entries });
      return exitCodes.done;
    }
    const lines = treeLines({ entries, leafId }, { all: options.all === true, painter: output });
    for (const line of lines) output.print(line);
    if (lines.length === 0) output.aside("The session has no messages yet.");
    const { message } = (entries.find(({ id }) => id === leafId) ?? {}) as { readonly message?: Partial<PiMessage> };
    const { errorMessage = "" } = message ?? {};
    await explainLogin(errorMessage, { stateDir: options["state-dir"], output, env });
    return exitCodes.done;
  });
}

interface Node {
  readonly entry: Entry;
  readonly parent: Node | undefined;
  readonly children: Node[];
}

interface Drawing {
  /** Whether to draw entries that are not part of the conversation, too. */
  readonly all: boolean;
  readonly painter: Pick<Output, "paint" | "columns">;
}

/** The longest indentation. Deeper branches are not indented further. */
const maxIndent = 60;
const maxTextCharacters = 400;

/** The lines of a tree: a branch is indented only where the conversation divides. */
export function treeLines({ entries, leafId }: Entries, { all, painter }: Drawing): readonly string[] {
  const labels = labelsOf(entries);
  const { roots, nodes } = nodesOf(entries, all);
  const end = leafId === null ? undefined : nodes.get(leafId);
  const active = new Set<Node>();
  for (let node = end; node !== undefined; node = node.parent) active.add(node);

  const lines: string[] = [];
  const open = placed(roots, "");
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node, lead, indent } = next;
    const text = `${lead}${textOfNode(node, labels)}${node === end ? " ◀ the current end" : ""}`;
    const line = truncate(text, painter.columns ?? Number.POSITIVE_INFINITY);
    const style: Style | undefined = node === end ? "bold" : active.has(node) ? undefined : "dim";
    lines.push(style === undefined ? line : painter.paint(style, line));
    open.push(...placed(node.children, indent));
  }
  return lines;
}

interface Nodes {
  readonly roots: readonly Node[];
  /** The node of each entry, or of the nearest drawn entry above it. */
  readonly nodes: ReadonlyMap<string, Node | undefined>;
}

function nodesOf(entries: readonly Entry[], all: boolean): Nodes {
  const roots: Node[] = [];
  const nodes = new Map<string, Node | undefined>();
  for (const entry of entries) {
    if (nodes.has(entry.id)) continue;
    const parent = entry.parentId === null ? undefined : nodes.get(entry.parentId);
    const node = all || isConversation(entry) ? { entry, parent, children: [] } : undefined;
    if (node !== undefined) (parent?.children ?? roots).push(node);
    nodes.set(entry.id, node ?? parent);
  }
  return { roots, nodes };
}

function textOfNode({ entry }: Node, labels: ReadonlyMap<string, string>): string {
  const label = labels.get(entry.id);
  const words = [
    `${shorten(oneLine(entry.id), 16)} `,
    ...(label === undefined ? [] : [`[${shorten(oneLine(label), 60)}]`]),
    shorten(oneLine(shorten(textOfEntry(entry), 2_000)), maxTextCharacters),
  ];
  return words.join(" ");
}

interface Placed {
  readonly node: Node;
  /** The beginning of its line. */
  readonly lead: string;
  /** The beginning of the lines below it. */
  readonly indent: string;
}

/** The children of a node, the last one first. */
function placed(children: readonly Node[], indent: string): Placed[] {
  if (children.length === 1 || indent.length >= maxIndent) {
    return children.map((node) => ({ node, lead: indent, indent })).reverse();
  }
  return children
    .map((node, index) => {
      const isLast = index === children.length - 1;
      return { node, lead: `${indent}${isLast ? "└─ " : "├─ "}`, indent: `${indent}${isLast ? "   " : "│  "}` };
    })
    .reverse();
}

/** The labels by entry; the newest one counts, and an empty one removes it. */
function labelsOf(entries: readonly Entry[]): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  for (const { type, targetId, label } of entries as readonly (Entry & Readonly<Record<string, unknown>>)[]) {
    if (type !== "label" || typeof targetId !== "string") continue;
    if (typeof label === "string" && label !== "") labels.set(targetId, label);
    else labels.delete(targetId);
  }
  return labels;
}

/** Roles whose messages are not drawn: the system prompt, and results that belong to the call above them. */
const silentRoles: ReadonlySet<unknown> = new Set(["system", "toolResult"]);

function isConversation(entry: Entry): boolean {
  const { message, display } = entry as Readonly<Record<string, unknown>>;
  if (entry.type === "message") return isRecord(message) && !silentRoles.has(message["role"]);
  if (entry.type === "custom_message") return display !== false;
  return entry.type === "compaction" || entry.type === "branch_summary";
}

function textOfEntry(entry: Entry): string {
  const fields = entry as Readonly<Record<string, unknown>>;
  const { message } = fields;
  if (isRecord(message)) return `${String(message["role"] ?? "")}: ${textOfMessage(message as unknown as PiMessage)}`;
  switch (entry.type) {
    case "custom_message":
      return `${String(fields["customType"] ?? "")}: ${textOf({ role: "custom", content: fields["content"] })}`;
    case "compaction":
      return `compaction: ${String(fields["summary"] ?? "")}`;
    case "branch_summary":
      return `summary of a branch: ${String(fields["summary"] ?? "")}`;
    case "model_change":
      return `model: ${String(fields["provider"] ?? "")}/${String(fields["modelId"] ?? "")}`;
    case "thinking_level_change":
      return `thinking: ${String(fields["thinkingLevel"] ?? "")}`;
    case "label":
      return `label of ${String(fields["targetId"] ?? "")}: ${String(fields["label"] ?? "none")}`;
    case "session_info":
      return `name: ${String(fields["name"] ?? "")}`;
    default:
      return [entry.type, fields["customType"]].filter((word) => typeof word === "string").join(": ");
  }
}

/** The text of a message, and the tools that it calls. */
function textOfMessage(message: PiMessage): string {
  const { content, command, toolName } = message;
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  const calls = blocks.flatMap((block) =>
    isRecord(block) && block["type"] === "toolCall" ? [toolLine(String(block["name"] ?? ""), block["arguments"])] : [],
  );
  const facts = [
    typeof command === "string" ? `$ ${command}` : "",
    typeof toolName === "string" ? `[${toolName}]` : "",
  ];
  const words = [...facts, textOf(message), ...calls, message.errorMessage ?? ""];
  return words.filter((text) => text !== "").join(" ");
}
