import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { useWorkspace } from "./context.ts";

/** What screen readers say: the end of an answer politely, a question at once. */
export function Announcements(): JSX.Element {
  const { questions, selected } = useWorkspace();
  const polite = useComputed(() => selected.value?.conversation.announcement.value ?? "");
  const asked = useSignal("");
  const known = useRef(new Set<string>());
  useSignalEffect(() => {
    for (const { dialog, from } of questions.all.value) {
      if (known.current.has(dialog.dialogId)) continue;
      known.current.add(dialog.dialogId);
      asked.value = `A question from ${from}: ${dialog.title}`;
    }
  });
  return (
    <div class="unseen">
      <p role="status">{polite}</p>
      <p role="alert">{asked}</p>
    </div>
  );
}
