import type { JSX } from "preact";
import type { DeliveryState } from "../../../client/browser.ts";
import type { PushItem } from "../../state/items.ts";
import { Copy } from "../widgets/copy.tsx";
import { Icon } from "../widgets/icon.tsx";
import { Time } from "../widgets/time.tsx";
import { PlainText } from "./long-text.tsx";
import { Pictures } from "./pictures.tsx";

const words: Readonly<Record<DeliveryState, readonly [tone: string, word: string]>> = {
  accepted: ["quiet", "stored, not in the conversation yet"],
  held: ["quiet", "waits for its moment"],
  inserted: ["quiet", "in the conversation, not sent yet"],
  prepared: ["quiet", "in a request, not confirmed yet"],
  delivered: ["is-good", "the model has it"],
  answered: ["is-good", "the model has answered it"],
  parked: ["is-warn", "waits for the next run"],
  dropped: ["is-bad", "dropped"],
  cancelled: ["is-warn", "cancelled"],
  expired: ["is-warn", "expired"],
  failed: ["is-bad", "failed"],
  unknown: ["is-warn", "it is not known if the model has it"],
};

const evidenceWords = {
  headers: "the provider accepted the request",
  start: "the provider began to answer",
  content: "the answer has begun",
  message: "the answer is complete",
} as const;

/** A push, or the message of an extension: what it says, and how far it has come. */
export function Push({ item }: { readonly item: PushItem }): JSX.Element {
  const [tone, word] = item.state === undefined ? ["", ""] : words[item.state];
  return (
    <>
      <header class="item-head">
        <Icon name="push" />
        <strong>
          <bdi>{item.customType}</bdi>
        </strong>
        <Time at={item.at} />
        <span class="push-right" />
        {word !== "" && (
          <span class={tone} title={item.evidence === undefined ? undefined : evidenceWords[item.evidence]}>
            {word}
          </span>
        )}
        <Copy what="this push" text={() => item.text.text.value} />
      </header>
      <PlainText text={item.text} />
      <Pictures pictures={item.pictures} />
      {item.reason !== undefined && <p class="quiet">{item.reason}</p>}
    </>
  );
}
