import type { ToolCall } from "@agentclientprotocol/sdk";
import { outputText } from "./tool-results.ts";

type Meta = Readonly<Record<string, unknown>>;

/** How much of the known output is looked for in the next state of the output, in UTF-16 units. */
const overlapChars = 1_024;

/**
 * A terminal that a client only displays. Zed creates it from `terminal_info` in the `_meta` of a `tool_call`, not of a
 * `tool_call_update`, and then takes `terminal_output` and `terminal_exit` from the updates (`agent_servers/src/acp.rs`).
 */
export class DisplayTerminal {
  readonly #id: string;
  readonly #cwd: string;
  #shown = "";

  constructor(id: string, cwd: string) {
    this.#id = id;
    this.#cwd = cwd;
  }

  start(): Pick<ToolCall, "content" | "_meta"> {
    const info = { terminal_id: this.#id, cwd: this.#cwd };
    return { content: [{ type: "terminal", terminalId: this.#id }], _meta: { terminal_info: info } };
  }

  /** What is new in the output: pi's tools report its end as a whole. Undefined: nothing is. */
  output(content: unknown): Record<string, unknown> | undefined {
    const text = outputText(content);
    const data = text.slice(this.#knownUntil(text));
    this.#shown = text;
    return data === "" ? undefined : { terminal_output: { terminal_id: this.#id, data } };
  }

  /** `meta`: other fields of the same update, with the exit code if it is known. */
  exit(meta: Meta | null | undefined): Record<string, unknown> {
    const ours = meta?.["pi-rpcd"] as { readonly exitCode?: number } | undefined;
    return { ...meta, terminal_exit: { terminal_id: this.#id, exit_code: ours?.exitCode ?? null, signal: null } };
  }

  /** Where the text that was shown ends in this one, whose beginning can be missing. */
  #knownUntil(text: string): number {
    if (text.startsWith(this.#shown)) return this.#shown.length;
    const end = this.#shown.slice(-overlapChars);
    const at = text.lastIndexOf(end);
    return at === -1 ? 0 : at + end.length;
  }
}
