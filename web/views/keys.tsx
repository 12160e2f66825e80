import type { JSX } from "preact";
import { usePage } from "./context.ts";
import { keyedActions } from "./key-words.ts";
import { Sheet } from "./widgets/sheet.tsx";

/** The list of keys. */
export function KeyList(): JSX.Element {
  const { app, looks } = usePage();
  return (
    <Sheet
      title="Keys"
      onClose={() => {
        if (looks.sheet.value === "keys") looks.sheet.value = undefined;
      }}
    >
      {(close) => (
        <>
          <dl class="facts keys">
            {keyedActions(app, looks).map(
              ({ keys, does }) =>
                keys !== undefined && [
                  <dt key={does}>
                    <Keys keys={keys} />
                  </dt>,
                  <dd key={`${does} meaning`}>{does}</dd>,
                ],
            )}
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

/** Keys that are pressed one after the other, or together. */
export function Keys({ keys }: { readonly keys: readonly string[] }): JSX.Element {
  return (
    <>
      {keys.map((key) => (
        <kbd key={key}>{key}</kbd>
      ))}
    </>
  );
}
