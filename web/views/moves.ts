import type { App } from "../state/app.ts";
import type { Looks, Place, Tab } from "./place.ts";

// How people get from one view to another, by mouse, touch or key.

export function showPlace(looks: Looks, place: Place): void {
  const isThere = looks.place.value === place;
  looks.place.value = place;
  // With one column, Sessions is the list.
  looks.shows.value = place === "session" && (isThere || looks.shows.value === "main") ? "rail" : "main";
}

export function openSession(app: App, looks: Looks, sessionId: string): void {
  looks.revealed.value = undefined;
  showSession(app, looks, sessionId);
  focusWhenShown(focusable);
}

/** The answers of a question are gone once one was chosen: the focus goes on to what is said. */
export function leaveQuestion(): void {
  focusWhenShown(focusable);
}

export function showTab(looks: Looks, tab: Tab): void {
  if (looks.place.value !== "session") return;
  looks.tab.value = tab;
  looks.shows.value = "main";
  focusWhenShown(focusable);
}

export function goToComposer(looks: Looks): void {
  const field = (): HTMLElement | null => document.querySelector(".composer textarea");
  if (looks.place.value !== "session") return;
  looks.tab.value = "conversation";
  const { activeElement } = document;
  field()?.focus();
  if (document.activeElement === activeElement) focusWhenShown(field);
}

export function showSearch(looks: Looks): void {
  looks.sheet.value = "search";
}

/** What gets the focus in the view of a session that is shown. */
function focusable(): HTMLElement | null {
  return document.querySelector(".panel:not([inert]) .log, .panel:not([inert]).figures");
}

function showSession(app: App, looks: Looks, sessionId: string): void {
  app.workspace.value?.select(sessionId);
  looks.place.value = "session";
  looks.shows.value = "main";
}

/** Shows the timeline of a push. `from`: the session in whose conversation it was opened. */
export function showPush(looks: Looks, deliveryId: string, from?: string): void {
  looks.push.value = { deliveryId, from };
  looks.place.value = "pushes";
  looks.shows.value = "main";
}

/** Lists the pushes of a session. */
export function showPushesOf(looks: Looks, sessionId: string): void {
  looks.pushesOf.value = sessionId;
  looks.push.value = undefined;
  goToPushes(looks);
}

/** Shows the list of pushes, with the focus on its first row. */
export function goToPushes(looks: Looks): void {
  looks.place.value = "pushes";
  looks.shows.value = "main";
  focusWhenShown(() => document.querySelector<HTMLElement>(".push-row .row-name") ?? document.getElementById("main"));
}

/** Closes the timeline: back to the conversation that led to it, or to its row. */
export function closePush(app: App, looks: Looks): void {
  const { value: push } = looks.push;
  if (push === undefined) return;
  looks.push.value = undefined;
  const { deliveryId, from } = push;
  if (from !== undefined) showInConversation(app, looks, from, deliveryId);
  else focusWhenShown(() => rowOfPush(deliveryId) ?? document.querySelector<HTMLElement>(".push-row .row-name"));
}

function rowOfPush(deliveryId: string): HTMLElement | null {
  return document.querySelector<HTMLElement>(`[data-delivery-row="${CSS.escape(deliveryId)}"] .row-name`);
}

/** Opens the conversation of a push, at its card if that is loaded. */
export function showInConversation(app: App, looks: Looks, sessionId: string, deliveryId: string): void {
  looks.revealed.value = deliveryId;
  showSession(app, looks, sessionId);
  focusWhenShown(() => {
    const card = document.querySelector<HTMLElement>(`.item[data-delivery="${CSS.escape(deliveryId)}"]`);
    card?.scrollIntoView({ block: "center" });
    return card ?? document.querySelector<HTMLElement>(".log");
  });
}

/** Back to the list, with the focus on the row of the session that was shown. */
export function goBack(looks: Looks): void {
  looks.place.value = "session";
  looks.shows.value = "rail";
  focusWhenShown(
    () => document.querySelector('.row[data-selected="true"] .row-name') ?? document.querySelector(".row-name"),
  );
}

/** Opens the session of the next open question, after the one that has the focus, and focuses the question, not an answer. */
export function goToNextQuestion(app: App, looks: Looks): void {
  const questions = app.workspace.value?.questions.all.value.filter(({ state }) => state.kind !== "ended") ?? [];
  const at = questions.findIndex(({ dialog }) => dialog.dialogId === focusedQuestion());
  const next = questions[(at + 1) % questions.length];
  if (next === undefined) return;
  showSession(app, looks, next.sessionId);
  focusWhenShown(() => document.getElementById(questionId(next.dialog.dialogId)));
}

export function questionId(dialogId: string): string {
  return `question-${dialogId}`;
}

/** Counts: only the newest wish to focus holds. */
let focusWishes = 0;

/** Focuses an element when the views show the last change, unless a person has moved the focus by then. */
function focusWhenShown(find: () => HTMLElement | null): void {
  const { activeElement: before } = document;
  focusWishes += 1;
  const wish = focusWishes;
  const focus = (): void => {
    if (wish !== focusWishes) return;
    const { activeElement } = document;
    if (activeElement === before || activeElement === document.body) find()?.focus();
  };
  requestAnimationFrame(() => requestAnimationFrame(focus));
}

function focusedQuestion(): string | undefined {
  return document.activeElement?.closest<HTMLElement>("[data-question]")?.dataset["question"];
}
