import type { ContextItem, ContextTarget, Repair, RepairCode } from "../../../context/document/document.ts";
import { repairNote } from "../../../context/document/faults.ts";
import { repairItems } from "../../../context/document/repair.ts";
import { contextForStructured, type SelectOptions } from "../../../context/document/select.ts";
import { WireError } from "../../../protocol/errors.ts";

// Documents for the tests of reading, selecting and repairing.

export type Raw = Readonly<Record<string, unknown>>;

export const target: ContextTarget = { api: "anthropic-messages", provider: "anthropic", id: "m", takesImages: true };
export const own = { api: target.api, provider: target.provider, id: target.id };
export const other = { api: "openai-responses", provider: "openai", id: "gpt" };

export const png = "iVBORw0KGgo=";

export function tree(nodes: readonly Raw[], more: Raw = {}): Raw {
  return { format: "pi-rpcd/context", version: 1, nodes, ...more };
}

export function list(items: readonly Raw[]): Raw {
  return { format: "pi-rpcd/context", version: 1, items };
}

/** Nodes in a chain; default ids are n0, n1, …, default times 1, 2, …. */
export function chain(...nodes: readonly Raw[]): Raw {
  const full = nodes.map((node, index) => ({
    id: `n${index}`,
    parentId: index === 0 ? null : `n${index - 1}`,
    timestamp: index + 1,
    ...node,
  }));
  return tree(full, { leafId: full.at(-1)?.id });
}

export const user = { role: "user", content: "Hello" };
export const answer = { role: "assistant", content: "Hi" };
export function call(id: string, more: Raw = {}): Raw {
  return { role: "toolCall", toolCallId: id, toolName: "bash", arguments: { command: "ls" }, ...more };
}
export function result(id: string, content = "ok", more: Raw = {}): Raw {
  return { role: "toolResult", toolCallId: id, toolName: "bash", content, ...more };
}
/** An assistant's item or node with calls of these ids. */
export function calling(ids: readonly string[], more: Raw = {}): Raw {
  return { role: "assistant", toolCalls: ids.map((id) => ({ id, name: "bash", arguments: {} })), ...more };
}

export interface Mended {
  readonly items: readonly ContextItem[];
  readonly repairs: readonly Repair[];
  readonly codes: readonly RepairCode[];
}

/** Selects and repairs; with `repair: false` it throws at the first fault. */
export function mend(
  document: Raw,
  options: SelectOptions & { repair?: boolean; target?: ContextTarget } = {},
): Mended {
  const repairs: Repair[] = [];
  const { repair = true, target: model = target, ...select } = options;
  const note = repairNote(repair, (found) => repairs.push(found));
  const items = repairItems(contextForStructured(document, undefined, { until: "through", note, ...select }), {
    target: model,
    repair,
    note,
  });
  return { items, repairs, codes: repairs.map(({ code }) => code) };
}

/** The error of a call, as on the wire. */
export function refusal(action: () => unknown): { kind: string; status: number; message: string; data: Raw } {
  try {
    action();
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    const { name: _, retryable: __, ...data } = error.data;
    return { kind: error.kind, status: error.httpStatus, message: error.message, data };
  }
  throw new Error("nothing was refused");
}

/** Items in short: the role, with the ids of calls. */
export function outline(items: readonly ContextItem[]): string[] {
  return items.map(({ role, toolCalls, toolCallId, content }) => {
    if (toolCalls !== undefined) return `${role}(${toolCalls.map(({ id }) => id).join()})`;
    if (role === "toolResult") return `${role}(${toolCallId ?? ""})`;
    const [first] = content;
    return first?.type === "text" ? `${role}:${first.text}` : role;
  });
}
