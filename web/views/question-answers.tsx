import { type ReadonlySignal, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX, TargetedInputEvent } from "preact";
import type { DialogAnswer } from "../../protocol/dialog.ts";
import type { Question } from "../state/questions.ts";
import { Visible } from "../text/visible.tsx";
import { useWorkspace } from "./context.ts";
import { useFreshPress } from "./fresh-press.ts";
import { leaveQuestion } from "./moves.ts";

interface AnswersProps {
  readonly question: Question;
  readonly isReady: ReadonlySignal<boolean>;
}

/** The answers of a question. None of them ever gets the focus by itself. */
export function Answers({ question, isReady }: AnswersProps): JSX.Element {
  const { questions } = useWorkspace();
  const { dialog, state } = question;
  const mayAnswer = (): boolean =>
    isReady.value && question.state.kind === "open" && Date.now() >= question.state.answerableFrom;
  const answer = (given: DialogAnswer): void => {
    void questions.answer(dialog.dialogId, given);
    leaveQuestion();
  };
  const press = (given: DialogAnswer, children: ComponentChildren, kind = ""): JSX.Element => (
    <AnswerButton
      kind={kind}
      isWorking={isReady.value && state.kind === "open"}
      mayAnswer={mayAnswer}
      act={() => answer(given)}
    >
      {children}
    </AnswerButton>
  );
  if (!questions.mayAnswer.value) return <p class="question-about">This page may look, but not answer.</p>;
  if (state.kind === "answering") return <p class="question-about">Answering…</p>;
  switch (dialog.method) {
    case "confirm":
      return (
        <div class="row-of-buttons">
          {press({ confirmed: true }, "Yes")}
          {press({ confirmed: false }, "No")}
        </div>
      );
    case "select":
      return (
        <>
          <div class="options">
            {dialog.options?.map((option, index) => (
              <span key={index}>{press({ value: option }, <Visible text={option} />)}</span>
            ))}
          </div>
          <div class="row-of-buttons">{press({ cancelled: true }, "Dismiss", "bare")}</div>
        </>
      );
    default:
      return (
        <TextAnswer
          question={question}
          mayAnswer={mayAnswer}
          answer={answer}
          dismiss={press({ cancelled: true }, "Dismiss", "bare")}
        />
      );
  }
}

interface TextAnswerProps {
  readonly question: Question;
  readonly dismiss: JSX.Element;
  mayAnswer(): boolean;
  answer(given: DialogAnswer): void;
}

function TextAnswer({ question: { dialog }, dismiss, mayAnswer, answer }: TextAnswerProps): JSX.Element {
  const text = useSignal(dialog.prefill ?? "");
  const field = {
    class: "field",
    "aria-label": "Your answer",
    placeholder: dialog.placeholder ?? "",
    value: text.value,
    onInput: ({ currentTarget }: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) => {
      text.value = currentTarget.value;
    },
  };
  const give = (): void => answer({ value: text.value });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.repeat || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    if (mayAnswer()) give();
  };
  return (
    <>
      {dialog.method === "editor" ? <textarea {...field} rows={6} /> : <input {...field} onKeyDown={onKeyDown} />}
      <div class="row-of-buttons">
        <AnswerButton kind="" isWorking={mayAnswer()} mayAnswer={mayAnswer} act={give}>
          Answer
        </AnswerButton>
        {dismiss}
      </div>
    </>
  );
}

interface AnswerButtonProps {
  readonly kind: string;
  readonly isWorking: boolean;
  readonly children: ComponentChildren;
  mayAnswer(): boolean;
  act(): void;
}

function AnswerButton({ kind, isWorking, children, mayAnswer, act }: AnswerButtonProps): JSX.Element {
  const handlers = useFreshPress(mayAnswer, act);
  return (
    <button type="button" class={`button ${kind}`} aria-disabled={!isWorking} {...handlers}>
      {children}
    </button>
  );
}
