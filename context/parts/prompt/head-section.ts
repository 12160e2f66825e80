import type { AgentMessage, SystemMessage } from "../../../extension/pi-types.ts";

/** Returns the messages with the section as the last of their head, exactly once. A list without a head gets one. */
export function withHeadSection(
  messages: readonly AgentMessage[],
  name: string,
  section: string,
): readonly AgentMessage[] {
  const [head, ...rest] = messages;
  if (head?.role !== "system") {
    return [{ role: "system", content: "", sections: { [name]: section }, timestamp: 0 }, ...messages];
  }
  const { [name]: _, ...others } = head.sections ?? {};
  return [{ ...head, sections: { ...others, [name]: section } }, ...rest];
}

/**
 * Replaces each text of a section by the result of `change`, in the head and in pi's later patches. `changeText` does
 * the same for a prompt without sections. Returns the same list if nothing changes.
 */
export function withChangedSection(
  messages: readonly AgentMessage[],
  name: string,
  change: (section: string) => string,
  changeText: (prompt: string) => string,
): readonly AgentMessage[] {
  let isChanged = false;
  const changed = messages.map((message) => {
    if (message.role !== "system") return message;
    const made = changedMessage(message, name, change, changeText);
    isChanged ||= made !== message;
    return made;
  });
  return isChanged ? changed : messages;
}

function changedMessage(
  message: SystemMessage,
  name: string,
  change: (section: string) => string,
  changeText: (prompt: string) => string,
): SystemMessage {
  const { sections, content } = message;
  const section = sections !== undefined && Object.hasOwn(sections, name) ? sections[name] : undefined;
  if (typeof section === "string") {
    const made = change(section);
    // The section keeps its place.
    return made === section ? message : { ...message, sections: { ...sections, [name]: made } };
  }
  if (typeof content !== "string" || content === "") return message;
  const made = changeText(content);
  return made === content ? message : { ...message, content: made };
}
