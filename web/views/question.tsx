import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Question } from "../state/questions.ts";
import { Visible } from "../text/visible.tsx";
import { useWorkspace } from "./context.ts";
import { questionId } from "./moves.ts";
import { Answers } from "./question-answers.tsx";
import { useReadWhole } from "./read-whole.ts";
import { Icon } from "./widgets/icon.tsx";
import { Time } from "./widgets/time.tsx";

/** Answers work this long after they appeared. */
const settleMs = 500;

interface CardProps {
  readonly question: Question;
  /** In the list of sessions. */
  readonly isCompact: boolean;
}

/** A question of an extension, with its whole text and its answers. Escape does nothing to it. */
export function QuestionCard({ question, isCompact }: CardProps): JSX.Element {
  const { dialog, state, from, refusal } = question;
  const { questions } = useWorkspace();
  const text = useRef<HTMLDivElement>(null);
  const isRead = useReadWhole(text);
  const isSettled = useSettled();
  const isReady = useComputed(() => isRead.value && isSettled.value);
  const owner = dialog.owner?.name;
  return (
    <section
      class="question"
      id={isCompact ? undefined : questionId(dialog.dialogId)}
      data-question={dialog.dialogId}
      data-ready={isReady.value}
      tabIndex={-1}
      aria-label={`Question from ${from}`}
    >
      <div class="question-text" ref={text} role="note" aria-label={dialog.title} tabIndex={isCompact ? undefined : 0}>
        <h3 class="question-title">
          <Visible text={dialog.title} />
        </h3>
        {dialog.message !== undefined && (
          <p class="message">
            <Visible text={dialog.message} />
          </p>
        )}
      </div>
      {!isCompact && (
        <p class="question-about">
          An extension of <bdi>{from}</bdi> asks
          {owner !== undefined && (
            <>
              {" "}
              because of a message from <bdi>{owner}</bdi>
            </>
          )}
          , since <Time at={dialog.openedAt} />, until <Time at={dialog.deadline} />.
          {dialog.unattendedUntil !== undefined && (
            <>
              {" "}
              No one can answer it now: it is cancelled at <Time at={dialog.unattendedUntil} />.
            </>
          )}
        </p>
      )}
      {state.kind === "ended" ? (
        <p class="question-end" role="status">
          <Icon name="info" /> <bdi>{state.words}</bdi>{" "}
          <button type="button" class="link" onClick={() => questions.dismissEnded(dialog.dialogId)}>
            Hide
          </button>
        </p>
      ) : (
        <Answers question={question} isReady={isReady} />
      )}
      {state.kind === "open" && questions.mayAnswer.value && !isRead.value && (
        <p class="question-about">Answers work once the whole text was on screen: read to its end.</p>
      )}
      {refusal !== undefined && (
        <p class="is-bad" role="status">
          {refusal}
        </p>
      )}
      {!isCompact && <AnswerHere />}
    </section>
  );
}

function AnswerHere(): JSX.Element | null {
  const { questions } = useWorkspace();
  if (!questions.mayAnswer.value || questions.answersHere.value) return null;
  return (
    <p class="question-about">
      “Answer here” is off: a question does not wait for this tab.{" "}
      <button type="button" class="link" onClick={() => void questions.setAnswersHere(true)}>
        Turn it on
      </button>
    </p>
  );
}

/** Whether the view has been there for a moment: a click or key that was meant for what was there before is over. */
function useSettled(): { readonly value: boolean } {
  const isSettled = useSignal(false);
  useEffect(() => {
    const timer = setTimeout(() => {
      isSettled.value = true;
    }, settleMs);
    return () => clearTimeout(timer);
  }, []);
  return isSettled;
}

/** Characters of a line in the list of sessions, about. */
const lineChars = 28;

/** Whether a question fits the list of sessions: at most six lines, and answers that are buttons. */
export function isShort({ dialog }: Question): boolean {
  if (dialog.method === "input" || dialog.method === "editor" || (dialog.options?.length ?? 0) > 4) return false;
  const text = `${dialog.title}\n${dialog.message ?? ""}`.slice(0, 7 * lineChars).split("\n");
  const lines = text.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / lineChars)), 0);
  return lines <= 6;
}
