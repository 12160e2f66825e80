import type { JSX } from "preact";
import type { Question } from "../state/questions.ts";
import { QuestionCard } from "./question.tsx";

/** The oldest open question of a session, after those that have just ended. The next one takes its place. */
export function QuestionZone({ questions }: { readonly questions: readonly Question[] }): JSX.Element | null {
  const ended = questions.filter(({ state }) => state.kind === "ended");
  const open = questions.filter(({ state }) => state.kind !== "ended");
  if (questions.length === 0) return null;
  return (
    <div class="question-zone">
      {open.length > 1 && <p class="question-about">1 of {open.length} questions</p>}
      {[...ended, ...open.slice(0, 1)].map((question) => (
        <QuestionCard key={question.dialog.dialogId} question={question} isCompact={false} />
      ))}
    </div>
  );
}
