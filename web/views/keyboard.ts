import type { App } from "../state/app.ts";
import { loadedPlaces } from "./loaded.ts";
import {
  closePush,
  goBack,
  goToComposer,
  goToNextQuestion,
  goToPushes,
  showPlace,
  showSearch,
  showTab,
} from "./moves.ts";
import { type Looks, tabs } from "./place.ts";

const isApple = /Mac|iP/.test(navigator.platform);

/** The keys that show all actions. */
export const actionsKeys = [isApple ? "⌘" : "Ctrl", "K"] as const;
/** The browser's own keys to find a text. */
export const findKeys = [isApple ? "⌘" : "Ctrl", "F"] as const;

/** What the letter keys do. Those that are pressed one after the other have a space between them. key-words.ts has the words. */
export function letterActions(app: App, looks: Looks) {
  return {
    j: () => moveFocus(1),
    k: () => moveFocus(-1),
    i: () => goToComposer(looks),
    a: () => goToNextQuestion(app, looks),
    "[": () => stepRequest(app, looks, -1),
    "]": () => stepRequest(app, looks, 1),
    "g s": () => goBack(looks),
    "g p": () => goToPushes(looks),
    "g d": () => showPlace(looks, "daemon"),
    "/": () => showSearch(looks),
    "?": () => {
      looks.sheet.value = "keys";
    },
  } as const;
}

/** Handles the keys of the whole page until the returned function is called. */
export function watchKeys(app: App, looks: Looks): () => void {
  let before = "";
  const letters: Readonly<Record<string, () => void>> = {
    ...letterActions(app, looks),
    ...Object.fromEntries(tabs.map((tab, index) => [String(index + 1), () => showTab(looks, tab)])),
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (opensSheet(event, looks)) return;
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

/** Opens the search or all actions, also from within a field: the browser has something else for these keys. */
function opensSheet(event: KeyboardEvent, looks: Looks): boolean {
  const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
  if (looks.sheet.value === "search") {
    // What is typed before the search is built is no command. Then its window keeps all keys.
    if (key === "Escape") looks.sheet.value = undefined;
    return true;
  }
  const isCommand = isApple ? metaKey && !ctrlKey : ctrlKey && !metaKey;
  if (!isCommand || altKey || shiftKey || event.defaultPrevented) return false;
  const isActions = key.toLowerCase() === "k";
  const isFind = key.toLowerCase() === "f" && looks.letterKeys.value;
  if (!isActions && !isFind) return false;
  event.preventDefault();
  if (!event.repeat) looks.sheet.value = isActions ? "actions" : "search";
  return true;
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

function stepRequest(app: App, looks: Looks, by: 1 | -1): void {
  const open = app.workspace.value?.selected.value;
  if (open !== undefined && looks.place.value === "session") loadedPlaces.value?.stepRequest(open, looks, by);
}

/** Moves the focus among the rows of the list of sessions, of the pushes if they are shown, of requests or of messages. */
function moveFocus(by: 1 | -1): void {
  const focused = document.activeElement;
  const hasPushes = document.querySelector(".pushes") !== null && focused?.closest(".rail") == null;
  const isInMain = !hasPushes && focused?.closest(".main") != null;
  const inMain = ".panel:not([inert]) :is(.log .item, .request-open, .tree-row)";
  const selector = hasPushes ? ".push-row .row-name" : isInMain ? inMain : ".rail .row-name";
  const all = Array.from(document.querySelectorAll<HTMLElement>(selector));
  const hasFocus = all.findIndex((element) => element === focused || element.contains(focused));
  // From its timeline, one goes on at the push.
  const at = hasFocus === -1 && hasPushes ? all.findIndex(({ ariaCurrent }) => ariaCurrent === "true") : hasFocus;
  // The newest message is the last one, and the newest row of a tree the first.
  const isFromEnd = isInMain && all[0]?.matches(".tree-row") !== true;
  const from = at >= 0 ? at : isFromEnd ? all.length : -1;
  const next = all[Math.min(Math.max(from + by, 0), all.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}
