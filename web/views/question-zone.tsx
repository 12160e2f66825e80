import type { JSX } from "preact";
import type { Question } from "../state/questions.ts";
import { QuestionCard } from "./question.tsx";

/** The oldest question of a session. The next one takes its place when it has ended. */
export function QuestionZone({ questions }: { readonly questions: readonly Question[] }): JSX.Element | null {
  const [first] = questions;
  if (first === undefined) return null;
  return (
    <div class="question-zone">
      {questions.length > 1 && <p class="question-about">1 of {questions.length} questions</p>}
      <QuestionCard key={first.dialog.dialogId} question={first} isCompact={false} />
    </div>
  );
}
