import type { VNode } from "preact";
import { visibleParts } from "./hidden-characters.ts";

/** A command, a path or a question, with the names of characters that one cannot see. */
export function Visible({ text }: { readonly text: string }): VNode {
  return (
    <bdi>
      {visibleParts(text).map((part, index) =>
        part.kind === "text" ? (
          part.text
        ) : (
          <span key={index} class="hidden-character">
            {part.text}
          </span>
        ),
      )}
    </bdi>
  );
}
