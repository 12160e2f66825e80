import type { App } from "../state/app.ts";
import { actionsKeys, findKeys, letterActions } from "./keyboard.ts";
import { showPlace, showTab } from "./moves.ts";
import { type Looks, tabs } from "./place.ts";
import { tabWords } from "./session-tabs.tsx";

/** What the page itself does, in words, and the keys for it. */
export interface KeyedAction {
  readonly does: string;
  /** Pressed one after the other, or together. */
  readonly keys?: readonly string[];
  /** Undefined: what it does depends on what has the focus, so that only its key can do it. */
  readonly act?: (() => void) | undefined;
}

type Letters = ReturnType<typeof letterActions>;

const letterWords: Readonly<Record<keyof Letters, string>> = {
  j: "next session, message, request, push or row of the tree",
  k: "the one before",
  i: "write a message",
  a: "next question",
  "[": "the request before",
  "]": "the next request",
  "g s": "sessions",
  "g p": "pushes",
  "g d": "daemon",
  "/": "search",
  "?": "all keys",
};

const dependsOnFocus: ReadonlySet<keyof Letters> = new Set(["j", "k", "[", "]"]);
const needsSession: ReadonlySet<keyof Letters> = new Set(["i"]);

/** Everything that a key of the page does, and how one gets to its places. The lists of keys and of actions are made of it. */
export function keyedActions(app: App, looks: Looks): readonly KeyedAction[] {
  const letters = letterActions(app, looks);
  const hasSession = looks.place.value === "session" && app.workspace.value?.selected.value !== undefined;
  const isPossible = (letter: keyof Letters): boolean =>
    !dependsOnFocus.has(letter) && (hasSession || !needsSession.has(letter));
  return [
    ...(Object.keys(letters) as (keyof Letters)[]).map((letter) => ({
      does: letterWords[letter],
      keys: letter.split(" "),
      act: isPossible(letter) ? letters[letter] : undefined,
    })),
    ...tabs.map((tab, index) => ({
      does: tabWords[tab].toLowerCase(),
      keys: [String(index + 1)],
      act: hasSession ? () => showTab(looks, tab) : undefined,
    })),
    { does: "open a session, a push or the message of an entry; open and fold a tool or a run", keys: ["Enter"] },
    { does: "back: from the field to the conversation, from there to the sessions", keys: ["Esc"] },
    { does: "search; pressed again, the browser's own", keys: findKeys },
    { does: "all actions, also from within a field", keys: actionsKeys },
    { does: "new session", act: () => showPlace(looks, "new") },
    { does: "open one of pi's stored sessions", act: () => showPlace(looks, "stored") },
  ];
}
