import type { JSX } from "preact";
import { useOffer, usePage, useWorkspace } from "./context.ts";
import { actionsKeys } from "./keyboard.ts";
import { goToNextQuestion, showPlace, showSearch } from "./moves.ts";
import { Icon } from "./widgets/icon.tsx";
import { Menu, type MenuEntry } from "./widgets/menu.tsx";

/** The bar above everything: places, questions that wait, the connection, and what holds for this tab. */
export function Bar(): JSX.Element {
  const { app, looks } = usePage();
  const open = useWorkspace().questions.open.value;
  const shown = looks.place.value;
  const place = shown === "daemon" || shown === "pushes" ? shown : "sessions";
  return (
    <header class="bar">
      <span class="brand">pi-rpcd</span>
      <nav class="places" aria-label="Places">
        <button
          type="button"
          aria-current={place === "sessions" ? "page" : undefined}
          onClick={() => showPlace(looks, "session")}
        >
          Sessions
        </button>
        <button
          type="button"
          aria-current={place === "pushes" ? "page" : undefined}
          onClick={() => showPlace(looks, "pushes")}
        >
          Pushes
        </button>
        <button
          type="button"
          aria-current={place === "daemon" ? "page" : undefined}
          onClick={() => showPlace(looks, "daemon")}
        >
          Daemon
        </button>
      </nav>
      <span class="push-right" />
      {open > 0 && (
        <button type="button" class="button waiting-questions" onClick={() => goToNextQuestion(app, looks)}>
          <Icon name="question" />
          <span>
            {open} <span class="wide">{open === 1 ? "question waits" : "questions wait"}</span>
          </span>
        </button>
      )}
      <button
        type="button"
        class="button bare square wide"
        aria-label="Search"
        title="Search"
        onClick={() => showSearch(looks)}
      >
        <Icon name="search" />
      </button>
      <LinkState />
      <TabMenu />
    </header>
  );
}

const linkWords = { connecting: "Connecting", connected: "Live", lost: "Lost", ended: "Ended" } as const;
const linkTones = { connecting: "is-warn", connected: "is-good", lost: "is-warn", ended: "is-bad" } as const;

function LinkState(): JSX.Element {
  const { kind } = usePage().app.connection.value;
  return (
    <span class="link-state">
      <span class={`dot ${linkTones[kind]}`} />
      {linkWords[kind]}
    </span>
  );
}

function TabMenu(): JSX.Element {
  const { app, looks } = usePage();
  const { questions, notifications } = useWorkspace();
  const answersHere = questions.answersHere.value;
  const answering: readonly MenuEntry[] = questions.mayAnswer.value
    ? [
        {
          label: "Answer here",
          about:
            "Questions wait for this tab, visible or hidden. Half a minute after the last one who can answer has left, they are cancelled.",
          isOn: answersHere,
          choose: () => void questions.setAnswersHere(!answersHere),
        },
      ]
    : [];
  const notified = notifications.state.value;
  const notifying: readonly MenuEntry[] =
    notified === "unsupported"
      ? []
      : [
          {
            label: "Notifications",
            about:
              notified === "denied"
                ? "The browser's settings block them."
                : "When a question appears or a run ends while this tab is hidden.",
            isOn: notified === "on",
            choose: () => void notifications.turn(notified !== "on"),
          },
        ];
  const entries: readonly MenuEntry[] = [
    ...answering,
    ...notifying,
    {
      label: "Letter keys",
      about: "Single letters are commands, outside of fields.",
      isOn: looks.letterKeys.value,
      choose: () => {
        looks.letterKeys.value = !looks.letterKeys.value;
      },
    },
    { label: "Sign out", about: "Ends this page's access to the daemon.", choose: () => void app.signOut() },
  ];
  const label = "This tab";
  useOffer({ about: label, entries, isOfTab: true });
  const lists: readonly MenuEntry[] = [
    { label: "Search…", choose: () => showSearch(looks) },
    {
      label: "All actions…",
      about: actionsKeys.join(" "),
      choose: () => {
        looks.sheet.value = "actions";
      },
    },
    {
      label: "Show all keys",
      choose: () => {
        looks.sheet.value = "keys";
      },
    },
  ];
  return <Menu label={label} entries={[...lists, ...entries]} />;
}
