import type { ContentBlock, ToolCallContent, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { isRecord } from "../../protocol/objects.ts";
import { absolutePath, type ToolPlace } from "./paths.ts";
import { rawValue } from "./raw-value.ts";
import { fenced, tail } from "./text.ts";
import { type CalledTool, isOwnTool, isShell, locationOf } from "./tools.ts";

/** A tool's result, of a `tool_execution_end` or of a `toolResult` message. Nothing in it is checked. */
export interface ToolResult {
  readonly content: unknown;
  readonly details: unknown;
  readonly isError: boolean;
}

export interface ResultContext {
  readonly place: ToolPlace;
  /** The text of the file before `write` replaced it; `null`: there was no file. Undefined: it is not known. */
  readonly formerText?: string | null | undefined;
}

/** How much of a running tool's output is shown, in UTF-16 units. */
const maxRunningChars = 16 * 1024;

/** The fields of a tool call that its result decides. */
export function resultFields(tool: CalledTool, result: ToolResult, context: ResultContext): ResultFields {
  const { details, isError } = result;
  const path = isRecord(tool.args) ? absolutePath(tool.args["path"], context.place) : undefined;
  const changed = isError ? undefined : changeOf(tool, path, context.formerText);
  const content = changed ?? contentOf(tool.name, result.content);
  const line = tool.name === "edit" && isRecord(details) ? details["firstChangedLine"] : undefined;
  const rawOutput = rawDetails(tool.name, details);
  const exitCode = isShell(tool.name) ? exitCodeOf(result) : undefined;
  return {
    status: isError ? "failed" : "completed",
    content,
    ...(line !== undefined && path !== undefined && { locations: [locationOf(path, line)] }),
    ...(rawOutput !== undefined && { rawOutput }),
    ...(exitCode !== undefined && { _meta: { "pi-rpcd": { exitCode } } }),
  };
}

export type ResultFields = Pick<ToolCallUpdate, "locations" | "rawOutput" | "_meta"> & {
  status: "completed" | "failed";
  content: ToolCallContent[];
};

/** What a running tool has put out: the end of its text, and its images. */
export function runningContent(name: string, content: unknown): ToolCallContent[] {
  const blocks = blocksOf(content);
  const text = tail(blocks.map(textOf).join(""), maxRunningChars);
  const images = blocks.filter((block) => isRecord(block) && block["type"] === "image");
  return contentOf(name, [{ type: "text", text }, ...images]);
}

/** The text of a tool's content. */
export function outputText(content: unknown): string {
  return blocksOf(content).map(textOf).join("");
}

/** pi's `edit` and `write` as diffs. Undefined: it is not one of them, or its arguments are not known. */
function changeOf(
  { name, args }: CalledTool,
  path: string | undefined,
  formerText: string | null | undefined,
): ToolCallContent[] | undefined {
  if (!isRecord(args) || path === undefined) return undefined;
  if (name === "write" && typeof args["content"] === "string") {
    const newText = args["content"];
    if (formerText === undefined) return newText === "" ? [] : [shown({ type: "text", text: fenced(newText) })];
    return [{ type: "diff", path, oldText: formerText, newText }];
  }
  if (name !== "edit") return undefined;
  const diffs = editsOf(args).map(({ oldText, newText }) => ({ type: "diff" as const, path, oldText, newText }));
  return diffs.length === 0 ? undefined : diffs;
}

interface Edit {
  readonly oldText: string;
  readonly newText: string;
}

/** The entries of `edits`, in each form that pi accepts (`prepareEditArguments` in its `edit.js`). */
function editsOf(args: Readonly<Record<string, unknown>>): Edit[] {
  const { edits } = args;
  const given = typeof edits === "string" ? jsonOf(edits) : edits;
  const list: unknown[] = Array.isArray(given) ? given : [given];
  return [...list, args].flatMap((edit) => {
    if (!isRecord(edit)) return [];
    const { oldText, newText } = edit;
    return typeof oldText === "string" && typeof newText === "string" ? [{ oldText, newText }] : [];
  });
}

function contentOf(name: string, content: unknown): ToolCallContent[] {
  return blocksOf(content).flatMap((block) => {
    const known = contentBlock(block);
    if (known === undefined) return [];
    const isPlain = known.type === "text" && isOwnTool(name);
    return [shown(isPlain ? { type: "text", text: fenced(known.text) } : known)];
  });
}

/** A block of a tool's result. Blocks of other types are shown as JSON. Undefined: there is nothing to show. */
function contentBlock(block: unknown): ContentBlock | undefined {
  if (!isRecord(block)) return undefined;
  const { type, text, data, mimeType } = block;
  if (type === "text") return typeof text === "string" && text !== "" ? { type, text } : undefined;
  if (type === "image") {
    return typeof data === "string" && typeof mimeType === "string" ? { type, data, mimeType } : undefined;
  }
  const raw = rawValue(block);
  return raw === undefined ? undefined : { type: "text", text: fenced(JSON.stringify(raw, undefined, 2)) };
}

function shown(content: ContentBlock): ToolCallContent {
  return { type: "content", content };
}

function blocksOf(content: unknown): readonly unknown[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}

function textOf(block: unknown): string {
  return isRecord(block) && block["type"] === "text" && typeof block["text"] === "string" ? block["text"] : "";
}

/** pi's `details` without what the content shows: the output, and the diff of `edit`. Undefined: nothing is left. */
function rawDetails(name: string, details: unknown): unknown {
  const kept = isRecord(details) && isOwnTool(name) ? withoutShown(details) : rawValue(details);
  const isEmpty = kept === undefined || kept === null || (isRecord(kept) && Object.keys(kept).length === 0);
  return isEmpty ? undefined : { details: kept };
}

function withoutShown({ diff: _diff, truncation, ...others }: Record<string, unknown>): unknown {
  if (!isRecord(truncation)) return rawValue(others);
  const { content: _content, ...rest } = truncation;
  return rawValue({ ...others, truncation: rest });
}

/** pi has no field for it: the words are at the end of the output of a command that failed (`bash.js`). */
function exitCodeOf({ content, isError }: ToolResult): number | undefined {
  if (!isError) return 0;
  const found = /(?:^|\n)Command exited with code (-?\d{1,9})$/.exec(outputText(content).slice(-100));
  return found === null ? undefined : Number(found[1]);
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
