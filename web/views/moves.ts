import type { App } from "../state/app.ts";
import type { Looks, Place } from "./place.ts";

// How people get from one view to another, by mouse, touch or key.

export function showPlace(looks: Looks, place: Place): void {
  const isThere = looks.place.value === place;
  looks.place.value = place;
  // With one column, Sessions is the list.
  looks.shows.value = place === "session" && (isThere || looks.shows.value === "main") ? "rail" : "main";
}

export function openSession(app: App, looks: Looks, sessionId: string): void {
  app.workspace.value?.select(sessionId);
  looks.place.value = "session";
  looks.shows.value = "main";
  afterPaint(() => document.querySelector<HTMLElement>(".log")?.focus());
}

/** Back to the list, with the focus on the row of the session that was shown. */
export function goBack(looks: Looks): void {
  looks.place.value = "session";
  looks.shows.value = "rail";
  afterPaint(() => {
    const row = document.querySelector<HTMLElement>('.row[data-selected="true"] .row-name');
    (row ?? document.querySelector<HTMLElement>(".row-name"))?.focus();
  });
}

/** Opens the session of the next open question, after the one that has the focus, and focuses the question, not an answer. */
export function goToNextQuestion(app: App, looks: Looks): void {
  const questions = app.workspace.value?.questions.all.value.filter(({ state }) => state.kind !== "ended") ?? [];
  const at = questions.findIndex(({ dialog }) => dialog.dialogId === focusedQuestion());
  const next = questions[(at + 1) % questions.length];
  if (next === undefined) return;
  openSession(app, looks, next.sessionId);
  afterPaint(() => document.getElementById(questionId(next.dialog.dialogId))?.focus());
}

export function questionId(dialogId: string): string {
  return `question-${dialogId}`;
}

/** Calls it when the views show the last change. */
export function afterPaint(then: () => void): void {
  requestAnimationFrame(() => requestAnimationFrame(then));
}

function focusedQuestion(): string | undefined {
  return document.activeElement?.closest<HTMLElement>("[data-question]")?.dataset["question"];
}
