import type { App } from "../state/app.ts";
import { closePush, goBack, goToNextQuestion, goToPushes, showPlace } from "./moves.ts";
import type { Looks } from "./place.ts";

/** What the list of keys says. */
export const keyList: readonly (readonly [keys: readonly string[], does: string])[] = [
  [["j"], "next session, message or push"],
  [["k"], "the one before"],
  [["Enter"], "open a session or a push, open and fold a tool"],
  [["Esc"], "back: from the field to the conversation, from there to the sessions"],
  [["i"], "write a message"],
  [["a"], "next question"],
  [["g", "s"], "sessions"],
  [["g", "p"], "pushes"],
  [["g", "d"], "daemon"],
  [["?"], "this list"],
];

/** Handles the keys of the whole page until the returned function is called. */
export function watchKeys(app: App, looks: Looks): () => void {
  let before = "";
  const letters: Readonly<Record<string, () => void>> = {
    j: () => moveFocus(1),
    k: () => moveFocus(-1),
    i: () => document.querySelector<HTMLElement>(".composer textarea")?.focus(),
    a: () => goToNextQuestion(app, looks),
    "g s": () => goBack(looks),
    "g p": () => goToPushes(looks),
    "g d": () => showPlace(looks, "daemon"),
    "?": () => {
      looks.showsKeys.value = true;
    },
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    const pressed = before === "g" ? `g ${event.key}` : event.key;
    before = event.key === "g" && before !== "g" ? "g" : "";
    if (event.key === "Escape") {
      if (event.repeat) return;
      stepBack(app, looks);
      event.preventDefault();
      return;
    }
    if (!looks.letterKeys.value || isField(event.target)) return;
    const action = letters[pressed];
    if (action === undefined) return;
    event.preventDefault();
    action();
  };
  addEventListener("keydown", onKeyDown);
  return () => removeEventListener("keydown", onKeyDown);
}

function isField(target: EventTarget | null): boolean {
  return (
    target instanceof Element && target.closest("input:not([type=radio], [type=checkbox]), textarea, select") !== null
  );
}

function stepBack(app: App, looks: Looks): void {
  const focused = document.activeElement;
  const log = document.querySelector<HTMLElement>(".log");
  const firstPush = document.querySelector<HTMLElement>(".push-row .row-name");
  if (isField(focused) && focused?.closest(".main") !== null && log !== null) {
    (document.querySelector<HTMLElement>(".item[data-current]") ?? log).focus();
  } else if (isField(focused) && focused?.closest(".push-list") != null && firstPush !== null) {
    firstPush.focus();
  } else if (looks.place.value === "pushes" && looks.push.value !== undefined) {
    closePush(app, looks);
  } else {
    goBack(looks);
  }
}

/** Moves the focus among the rows of the list of sessions, of the pushes if they are shown, or of the messages. */
function moveFocus(by: 1 | -1): void {
  const focused = document.activeElement;
  const hasPushes = document.querySelector(".pushes") !== null && focused?.closest(".rail") == null;
  const isInLog = !hasPushes && focused?.closest(".main") != null;
  const selector = hasPushes ? ".push-row .row-name" : isInLog ? ".log .item" : ".rail .row-name";
  const all = Array.from(document.querySelectorAll<HTMLElement>(selector));
  const hasFocus = all.findIndex((element) => element === focused || element.contains(focused));
  // From its timeline, one goes on at the push.
  const at = hasFocus === -1 && hasPushes ? all.findIndex(({ ariaCurrent }) => ariaCurrent === "true") : hasFocus;
  const from = at >= 0 ? at : isInLog ? all.length : -1;
  const next = all[Math.min(Math.max(from + by, 0), all.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
