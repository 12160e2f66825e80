import type { JSX } from "preact";
import type { DraftView } from "../state/composer.ts";
import { Icon } from "./widgets/icon.tsx";

/** Images and long pasted texts that the next message takes along. */
export function DraftParts({ draft }: { readonly draft: DraftView }): JSX.Element | null {
  const images = draft.images.value;
  const pieces = draft.pieces.value;
  if (images.length === 0 && pieces.length === 0) return null;
  return (
    <ul class="drafts" aria-label="Goes along">
      {images.map(({ id, name, url }) => (
        <li key={id} class="draft">
          <img src={url} alt={name} />
          <RemoveButton what={`the image ${name}`} remove={() => draft.removeImage(id)} />
        </li>
      ))}
      {pieces.map(({ id, chars, preview }) => (
        <li key={id} class="draft piece">
          <span class="cut">{preview}</span>
          <span class="quiet">{chars.toLocaleString()} characters</span>
          <RemoveButton what="the pasted text" remove={() => draft.removePiece(id)} />
        </li>
      ))}
    </ul>
  );
}

function RemoveButton({ what, remove }: { readonly what: string; remove(): void }): JSX.Element {
  return (
    <button type="button" class="button small" aria-label={`Remove ${what}`} onClick={remove}>
      <Icon name="cross" />
    </button>
  );
}
