import type { JSX } from "preact";
import { evidenceWords } from "../../state/evidence.ts";
import type { PushItem } from "../../state/items.ts";
import { usePage } from "../context.ts";
import { showPush } from "../moves.ts";
import { signOfPush } from "../push-state.ts";
import { Copy } from "../widgets/copy.tsx";
import { Icon } from "../widgets/icon.tsx";
import { Time } from "../widgets/time.tsx";
import { PlainText } from "./long-text.tsx";
import { Pictures } from "./pictures.tsx";

/** A push, or the message of an extension: what it says, and how far it has come. */
export function Push({ item }: { readonly item: PushItem }): JSX.Element {
  const { app, looks } = usePage();
  const { deliveryId, state, evidence } = item;
  const sign = state === undefined ? undefined : signOfPush(state);
  return (
    <>
      <header class="item-head">
        <Icon name="push" />
        <strong>
          <bdi>{item.customType}</bdi>
        </strong>
        <Time at={item.at} />
        <span class="push-right" />
        {sign !== undefined && (
          <span class={sign.tone} title={evidence === undefined ? undefined : evidenceWords(evidence)}>
            {sign.word}
          </span>
        )}
        {deliveryId !== undefined && (
          <button
            type="button"
            class="link to-timeline"
            onClick={() => showPush(looks, deliveryId, app.workspace.value?.selected.value?.sessionId)}
          >
            Timeline
          </button>
        )}
        <Copy what="this push" text={() => item.text.text.value} />
      </header>
      <PlainText text={item.text} />
      <Pictures pictures={item.pictures} />
      {item.reason !== undefined && <p class="quiet">{item.reason}</p>}
    </>
  );
}
