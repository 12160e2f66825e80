import { expect } from "vitest";
import type { Client } from "../../../client/index.ts";
import { Conversation } from "../../../web/state/conversation.ts";
import type { Item } from "../../../web/state/items.ts";
import { done } from "../../../web/state/outcome.ts";
import type { Page, Tab } from "../../../web/state/page.ts";
import { patience } from "../../helpers/patience.ts";
import { FakePage } from "../../unit/web/fake-page.ts";

/** A page that draws a frame in each turn of the event loop. */
export class TurnPage implements Tab {
  readonly storage = new FakePage().storage;
  readonly notifier = new FakePage().notifier;
  #isHidden = false;
  readonly #listeners = new Set<() => void>();

  now(): number {
    return Date.now();
  }

  frame(paint: () => void): () => void {
    const drawing = setImmediate(paint);
    return () => clearImmediate(drawing);
  }

  get isHidden(): boolean {
    return this.#isHidden;
  }

  onVisibility(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  hide(isHidden: boolean): void {
    this.#isHidden = isHidden;
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Opens a session's conversation. */
export function open(client: Client, sessionId: string, page: Page = new TurnPage()): Conversation {
  const nothing = (): void => {};
  const watch = { onNotification: nothing, onMissed: nothing, onGone: nothing };
  return new Conversation({
    daemon: client,
    page,
    sessionId,
    info: () => undefined,
    resend: async () => done,
    ...watch,
  });
}

/** Resolves when it has been loaded. */
export async function loaded(conversation: Conversation): Promise<Conversation> {
  await expect.poll(() => conversation.state.value, patience).toEqual({ kind: "ready" });
  return conversation;
}

export function itemsOf(conversation: Conversation): readonly Item[] {
  return conversation.groups.value.flatMap(({ rows }) => rows.value.map(({ item }) => item.value));
}

/** What the session's file also has: everything but notes. */
export function messagesOf(conversation: Conversation): readonly string[] {
  return itemsOf(conversation).flatMap((item) => {
    if (item.kind === "tool") return [`${item.name} ${item.what} ${item.state} ${item.output?.text.value ?? ""}`];
    return item.kind === "note"
      ? []
      : [
          `${item.kind} ${"progress" in item ? item.progress : ""} ${"text" in item ? item.text.text.value : item.words}`,
        ];
  });
}
