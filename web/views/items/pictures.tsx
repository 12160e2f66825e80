import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Picture } from "../../state/items.ts";

export function Pictures({ pictures }: { readonly pictures: readonly Picture[] }): JSX.Element {
  return (
    <>
      {pictures.map((picture, index) => (
        <PictureView key={picture.id} picture={picture} number={index + 1} />
      ))}
    </>
  );
}

function PictureView({ picture, number }: { readonly picture: Picture; readonly number: number }): JSX.Element | null {
  useEffect(() => picture.show(), [picture]);
  const state = picture.state.value;
  switch (state.kind) {
    case "shown":
      return <img class="picture" src={state.url} alt={`Attachment ${number}`} />;
    case "refused":
      return <p class="quiet">The image cannot be shown: {state.words}</p>;
    default:
      return <p class="quiet">Reading an image…</p>;
  }
}
