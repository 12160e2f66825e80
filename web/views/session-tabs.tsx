import type { JSX } from "preact";
import type { OpenSession } from "../state/open-session.ts";
import { useOffer, usePage } from "./context.ts";
import { type Tab, tabs } from "./place.ts";
import { Icon } from "./widgets/icon.tsx";

export const tabWords: Readonly<Record<Tab, string>> = {
  conversation: "Conversation",
  requests: "Requests",
  context: "Context",
  cost: "Cost",
  tree: "Tree",
};

/** The views of a session. */
export function SessionTabs({ open }: { readonly open: OpenSession }): JSX.Element {
  const { looks } = usePage();
  const shown = looks.tab.value;
  const count = open.figures.value?.requests.all.value.length ?? 0;
  const hasTape = shown === "conversation" && count > 0;
  const foldTape = (): void => {
    looks.foldsTape.value = !looks.foldsTape.value;
  };
  useOffer({
    about: open.title.value,
    entries: hasTape ? [{ label: "Requests as bars", isOn: !looks.foldsTape.value, choose: foldTape }] : [],
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: tabs.length - 1, ArrowRight: 1 }[event.key];
    const next = by === undefined ? undefined : tabs[(tabs.indexOf(shown) + by) % tabs.length];
    if (next === undefined) return;
    looks.tab.value = next;
    document.getElementById(tabId(next))?.focus();
    event.preventDefault();
  };
  return (
    <div class="tabs-line">
      <div class="tabs" role="tablist" aria-label="Views of the session" onKeyDown={onKeyDown}>
        {tabs.map((tab) => (
          <button
            key={tab}
            type="button"
            role="tab"
            id={tabId(tab)}
            aria-selected={tab === shown}
            aria-controls={panelId(tab)}
            tabIndex={tab === shown ? 0 : -1}
            onClick={() => {
              looks.tab.value = tab;
            }}
          >
            {tabWords[tab]}
            {tab === "requests" && count > 0 && <span class="tab-count">{count}</span>}
          </button>
        ))}
      </div>
      {hasTape && (
        <button
          type="button"
          class="button bare small fold-tape"
          aria-label="Requests as bars"
          aria-expanded={!looks.foldsTape.value}
          onClick={foldTape}
        >
          <Icon name="chevron" />
          <span class="wide-words">Requests as bars</span>
        </button>
      )}
    </div>
  );
}

export function tabId(tab: Tab): string {
  return `tab-${tab}`;
}

export function panelId(tab: Tab): string {
  return `panel-${tab}`;
}
