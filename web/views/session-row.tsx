import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { SessionRow } from "../state/sessions.ts";
import { Visible } from "../text/visible.tsx";
import { usePage, useWorkspace } from "./context.ts";
import { openSession } from "./moves.ts";
import { isShort, QuestionCard } from "./question.tsx";
import { SessionMenu } from "./session-menu.tsx";
import { signOf } from "./session-state.ts";
import { usdWords } from "./widgets/figures.tsx";
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
  const { model, cwd, updatedAt, name, state, summary } = row.info;
  const said = useSignal("");
  const stateId = `state-${row.sessionId}`;
  return (
    <li class="row" data-session={row.sessionId} data-selected={isSelected} data-asks={row.group === "waits"}>
      <Icon name={icon} tone={tone} />
      <button
        type="button"
        class="row-name cut"
        aria-current={isSelected ? "true" : undefined}
        title={cwd}
        aria-describedby={stateId}
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
      <span class="row-state row-line">
        <span id={stateId} class="cut">
          <span class={tone === "quiet" ? "" : tone}>{word}</span>
          {model !== undefined && <> · {model.id}</>}
        </span>
        <Spent summary={summary} />
      </span>
      {summary?.lastText !== undefined && (
        <span class="row-state cut">
          <Visible text={summary.lastText.text} />
        </span>
      )}
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

/** What a session has cost, and how full its context was at the end of its newest run. */
function Spent({ summary }: { readonly summary: SessionRow["info"]["summary"] }): JSX.Element {
  const { usage, contextUsage } = summary ?? {};
  const percent = contextUsage?.percent;
  return (
    <span>
      {usage?.costUsd !== undefined && <span title="What the session has cost">{usdWords(usage.costUsd)}</span>}
      {usage?.costUsd !== undefined && percent !== undefined && " · "}
      {percent !== undefined && (
        <span title="How full the model's context was">
          {Math.round(percent)} %<span class="unseen"> of the context</span>
        </span>
      )}
    </span>
  );
}
