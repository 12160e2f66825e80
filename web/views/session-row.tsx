import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { SessionRow } from "../state/sessions.ts";
import { usePage, useWorkspace } from "./context.ts";
import { openSession } from "./moves.ts";
import { isShort, QuestionCard } from "./question.tsx";
import { SessionMenu } from "./session-menu.tsx";
import { signOf } from "./session-state.ts";
import { Icon } from "./widgets/icon.tsx";
import { Age } from "./widgets/time.tsx";

interface RowProps {
  readonly row: SessionRow;
  readonly isSelected: boolean;
}

/** A session in the list, with the first question that it asks. */
export function RowOfSession({ row, isSelected }: RowProps): JSX.Element {
  const { app, looks } = usePage();
  const { questions } = useWorkspace();
  const { icon, tone, word } = signOf(row);
  const question = questions.all.value.find(({ sessionId }) => sessionId === row.sessionId);
  const open = (): void => openSession(app, looks, row.sessionId);
  const { model, cwd, updatedAt, name, state } = row.info;
  const said = useSignal("");
  return (
    <li class="row" data-session={row.sessionId} data-selected={isSelected} data-asks={row.group === "waits"}>
      <Icon name={icon} tone={tone} />
      <button
        type="button"
        class="row-name cut"
        aria-current={isSelected ? "true" : undefined}
        title={cwd}
        onClick={open}
      >
        <bdi>{row.title}</bdi>
      </button>
      <span class="row-age">
        <Age at={updatedAt} />
      </span>
      <SessionMenu
        sessionId={row.sessionId}
        title={row.title}
        name={name ?? ""}
        isAsleep={state === "hibernated" || state === "crashed"}
        said={said}
      />
      <span class="row-state cut">
        <span class={tone === "quiet" ? "" : tone}>{word}</span>
        {model !== undefined && <> · {model.id}</>}
      </span>
      {row.why !== undefined && <span class="row-state">{row.why}</span>}
      {said.value !== "" && (
        <span class="row-state is-bad" role="status">
          {said.value}
        </span>
      )}
      {question !== undefined && !isSelected && (
        <div class="row-question">
          {isShort(question) ? (
            <QuestionCard question={question} isCompact={true} />
          ) : (
            <button type="button" class="button small" onClick={open}>
              Read the question
            </button>
          )}
        </div>
      )}
    </li>
  );
}
