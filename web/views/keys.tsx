import type { JSX } from "preact";
import { usePage } from "./context.ts";
import { Sheet } from "./widgets/sheet.tsx";

/** What the keys of keyboard.ts do. */
const keyList: readonly (readonly [keys: readonly string[], does: string])[] = [
  [["j"], "next session, message, request, push or row of the tree"],
  [["k"], "the one before"],
  [["Enter"], "open a session, a push or the message of an entry; open and fold a tool or a run"],
  [["Esc"], "back: from the field to the conversation, from there to the sessions"],
  [["/"], "search; also by the browser's own key for it, which pressed again is the browser's"],
  [["i"], "write a message"],
  [["a"], "next question"],
  [["1", "2", "3", "4", "5"], "conversation, requests, context, cost, tree"],
  [["[", "]"], "the request before, the next one"],
  [["g", "s"], "sessions"],
  [["g", "p"], "pushes"],
  [["g", "d"], "daemon"],
  [["?"], "this list"],
];

/** The list of keys. */
export function Keys(): JSX.Element {
  const { looks } = usePage();
  return (
    <Sheet
      title="Keys"
      onClose={() => {
        looks.showsKeys.value = false;
      }}
    >
      {(close) => (
        <>
          <dl class="facts keys">
            {keyList.map(([keys, does]) => [
              <dt key={does}>
                {keys.map((key) => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>,
              <dd key={`${does} meaning`}>{does}</dd>,
            ])}
          </dl>
          <p class="quiet">Letters do nothing in a field. They can be turned off for this tab, in its menu.</p>
          <div class="row-of-buttons">
            <button type="button" class="button" onClick={close}>
              Close
            </button>
          </div>
        </>
      )}
    </Sheet>
  );
}
