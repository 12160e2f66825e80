import { type AgentMessage, isObject, type SessionEntry } from "../../../extension/pi-types.ts";
import { CONTEXT_ROOT_TYPE, INSTRUCTIONS_SECTION } from "../../document/document.ts";

/** The text of the prompt's section. It says itself where it begins and ends, as pi's own sections do. */
export function instructionsSection(instructions: string): string {
  return `<${INSTRUCTIONS_SECTION}>\n${instructions}\n</${INSTRUCTIONS_SECTION}>`;
}

/**
 * The message list whose head has the section as its last, once. A list without a head gets one. The head is the only
 * place: a patch further down would be another text to models that take system messages between others.
 */
export function withInstructions(messages: readonly AgentMessage[], section: string): readonly AgentMessage[] {
  const [head, ...rest] = messages;
  if (head?.role !== "system") {
    return [{ role: "system", content: "", sections: { [INSTRUCTIONS_SECTION]: section }, timestamp: 0 }, ...messages];
  }
  const { [INSTRUCTIONS_SECTION]: _, ...others } = head.sections ?? {};
  return [{ ...head, sections: { ...others, [INSTRUCTIONS_SECTION]: section } }, ...rest];
}

/**
 * The instructions in the root entry of a session that was written from a context. Nothing else of the entry is read
 * here, which may be large and is looked at in every pi.
 */
export function rootInstructions(entries: readonly SessionEntry[]): string | undefined {
  const root = entries[0];
  if (root?.type !== "custom" || root.customType !== CONTEXT_ROOT_TYPE || root.parentId !== null) return undefined;
  const instructions = isObject(root.data) && root.data["version"] === 1 ? root.data["instructions"] : undefined;
  return typeof instructions === "string" && instructions !== "" ? instructions : undefined;
}
