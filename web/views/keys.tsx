import type { JSX } from "preact";
import { usePage } from "./context.ts";
import { keyList } from "./keyboard.ts";
import { Sheet } from "./widgets/sheet.tsx";

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
