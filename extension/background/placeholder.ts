import type { AgentToolResult } from "@earendil-works/pi-coding-agent";

/** The part of pi's terminal component interface that plain lines need. */
interface Lines {
  render(width: number): string[];
  invalidate(): void;
}

/** Renders a result that the tool's own renderer cannot render, because its details differ. */
export function placeholderComponent(content: AgentToolResult<unknown>["content"]): Lines {
  const text = content.map((block) => (block.type === "text" ? block.text : "")).join("\n");
  return {
    render: (width) => text.split("\n").flatMap((line) => wrapped(line, Math.max(1, width))),
    invalidate: () => {},
  };
}

function wrapped(line: string, width: number): string[] {
  const lines: string[] = [];
  for (let at = 0; at < line.length; at += width) lines.push(line.slice(at, at + width));
  return lines.length === 0 ? [""] : lines;
}
