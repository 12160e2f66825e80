import type { AgentToolResult } from "@earendil-works/pi-coding-agent";

/** As much of the components of pi's terminal interface as lines of text need. */
interface Lines {
  render(width: number): string[];
  invalidate(): void;
}

/** Shows a result that is not the tool's own: its renderer would not know the details. */
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
