import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { usePage, useWorkspace } from "./context.ts";
import { openSession } from "./moves.ts";

/** What screen readers say: the end of an answer politely, a question at once. A notification leads to its session. */
export function Announcements(): JSX.Element {
  const { app, looks } = usePage();
  const { questions, selected, notifications } = useWorkspace();
  const polite = useComputed(() => selected.value?.conversation.announcement.value ?? "");
  const asked = useSignal<JSX.Element | null>(null);
  const known = useRef(new Set<string>());
  useSignalEffect(() => {
    for (const { dialog, from } of questions.all.value) {
      if (known.current.has(dialog.dialogId)) continue;
      known.current.add(dialog.dialogId);
      // Firefox tells screen readers of an alert that appears, not of one whose words change.
      asked.value = (
        <p key={dialog.dialogId} role="alert">
          {`A question from ${from}: ${dialog.title}`}
        </p>
      );
    }
  });
  useEffect(
    () => notifications.onChosen((sessionId) => openSession(app, looks, sessionId)),
    [app, looks, notifications],
  );
  return (
    <div class="unseen">
      <p role="status">{polite}</p>
      {asked.value}
    </div>
  );
}
