import type { JSX } from "preact";
import type { UserItem } from "../../state/items.ts";
import { loadedPlaces } from "../loaded.ts";
import { Copy } from "../widgets/copy.tsx";
import { Time } from "../widgets/time.tsx";
import { PlainText } from "./long-text.tsx";
import { Pictures } from "./pictures.tsx";
import { WhoWords } from "./who.tsx";

export function UserMessage({ item }: { readonly item: UserItem }): JSX.Element {
  const ForkButton = loadedPlaces.value?.ForkButton;
  return (
    <>
      <header class="item-head">
        <strong>
          <WhoWords who={item.who} />
        </strong>
        <Time at={item.at} />
        <span class="push-right" />
        {ForkButton !== undefined && <ForkButton item={item} />}
        <Copy what="this message" text={() => item.text.text.value} />
      </header>
      <PlainText text={item.text} />
      <Pictures pictures={item.pictures} />
    </>
  );
}
