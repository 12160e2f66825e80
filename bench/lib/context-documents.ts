import { CONTEXT_FORMAT, CONTEXT_VERSION } from "../../context/document/document.ts";

// Documents that are identical in each run: conversations of agents and tools, in two sizes.

const mebibyte = 1024 * 1024;
const model = { api: "anthropic-messages", provider: "elsewhere", id: "other" };

export interface DocumentShape {
  readonly turns: number;
  /** Characters of the result of each turn's call. */
  readonly resultChars: number;
}

/** 10,000 nodes: a user's, a call, its result and an answer in each turn. */
export const manyNodes: DocumentShape = { turns: 2_500, resultChars: 1_500 };

/** 30 MiB in few nodes. */
export const manyBytes: DocumentShape = { turns: 500, resultChars: 57_300 };

/** A short conversation that a session could continue. */
export const fewNodes: DocumentShape = { turns: 12, resultChars: 1_500 };

/** A tree whose tool nodes are next to the path, as JSON. */
export function treeDocument({ turns, resultChars }: DocumentShape): string {
  const nodes: object[] = [];
  let parentId: string | null = null;
  let timestamp = 1_795_187_000_000;
  const add = (node: object): void => void nodes.push({ ...node, timestamp: timestamp++ });
  for (let turn = 0; turn < turns; turn += 1) {
    const [asked, called, answered, done] = ["u", "c", "r", "a"].map((kind) => `${kind}${turn}`);
    add({ id: asked, parentId, role: "user", content: prose(turn, 300) });
    // In every tenth turn the id is invalid for every service.
    const toolCallId = turn % 10 === 0 ? `call_${turn}|fc_${turn}` : `call_${turn}`;
    const input = { path: `src/module-${turn}.ts`, range: { from: turn, to: turn + 80 }, pattern: prose(turn, 60) };
    add({ id: called, parentId: asked, role: "toolCall", toolCallId, toolName: "read", arguments: input });
    add({ id: answered, parentId: called, role: "toolResult", toolCallId, content: code(turn, resultChars) });
    add({ id: done, parentId: asked, role: "assistant", content: prose(turn + 1, 600), model });
    parentId = done ?? null;
  }
  return JSON.stringify({ format: CONTEXT_FORMAT, version: CONTEXT_VERSION, leafId: parentId, nodes });
}

export function mebibytesOf(text: string): number {
  return Buffer.byteLength(text) / mebibyte;
}

const words =
  "the build fails because this module reads a file that another test has removed and nobody waits for it before für 测试".split(
    " ",
  );

function prose(seed: number, chars: number): string {
  let text = "";
  for (let at = seed * 7; text.length < chars; at += 1) text += `${words[(at * (1 + (seed % 5))) % words.length]} `;
  return text.slice(0, chars).trimEnd();
}

function code(seed: number, chars: number): string {
  let text = "";
  for (let line = 0; text.length < chars; line += 1) {
    text += `${String(line + 1).padStart(5)}\tif (value_${(seed + line) % 97} !== undefined) return "${line * 31}"; // ${words[line % words.length]}\n`;
  }
  return text.slice(0, chars);
}
