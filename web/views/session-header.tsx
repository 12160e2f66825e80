import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { Filter } from "../state/conversation.ts";
import type { OpenSession } from "../state/open-session.ts";
import { Visible } from "../text/visible.tsx";
import { BackButton } from "./back-button.tsx";
import { useOffer, usePage, useWorkspace } from "./context.ts";
import { Later, WithFigures } from "./later.tsx";
import { SessionMenu } from "./session-menu.tsx";
import { signOf } from "./session-state.ts";
import { StopButton } from "./stop-button.tsx";
import { Icon } from "./widgets/icon.tsx";

const filters: readonly (readonly [filter: Filter, word: string])[] = [
  ["all", "All"],
  ["changes", "Changes"],
  ["users", "Users"],
];

/** The head of a session: its name and state, its directory, its model, Stop during a run. */
export function SessionHeader({ open }: { readonly open: OpenSession }): JSX.Element {
  const { looks } = usePage();
  const { sessions } = useWorkspace();
  const info = open.info.value;
  const row = sessions.find(open.sessionId);
  const sign = row === undefined ? undefined : signOf(row);
  const said = useSignal("");
  const isOpen = useSignal(false);
  const showsFacts = useSignal(false);
  const hasFilters = looks.tab.value === "conversation";
  useOffer({
    about: "what the conversation shows",
    entries: hasFilters
      ? filters.map(([filter, word]) => ({
          label: `Show ${word.toLowerCase()}`,
          isOn: open.conversation.filter.value === filter,
          choose: () => open.conversation.setFilter(filter),
        }))
      : [],
  });
  return (
    <header class="head" data-open={isOpen.value}>
      <div class="head-name">
        <BackButton />
        <h1 class="cut" title={open.title.value}>
          <bdi>{open.title.value}</bdi>
        </h1>
        {sign !== undefined && !open.isGone.value && (
          <span class={`pill ${sign.tone}`}>
            <Icon name={sign.icon} />
            {sign.word}
            {open.composer.isRunning.value && <StopButton composer={open.composer} said={said} isSign={true} />}
          </span>
        )}
        {open.isGone.value && <span class="pill is-bad">closed</span>}
      </div>
      <Later saysSo={false} show={({ ModelFields }) => <ModelFields choices={open.choices} said={said} />} />
      <SessionMenu
        sessionId={open.sessionId}
        title={open.title.value}
        name={info?.name ?? ""}
        isAsleep={open.choices.isAsleep.value}
        said={said}
        entries={[
          {
            label: "About this session…",
            choose: () => {
              showsFacts.value = true;
            },
          },
        ]}
      />
      <div class="head-place">
        <button
          type="button"
          class="row-of-facts narrow"
          aria-expanded={isOpen.value}
          onClick={() => {
            isOpen.value = !isOpen.value;
          }}
        >
          <span class="cut">
            {[open.choices.model.value?.name, open.choices.level.value].filter(Boolean).join(" · ") || "Model"}
          </span>
          <Icon name="chevron" />
        </button>
        <span class="mono cut directory">
          <bdi>
            <Visible text={info?.cwd ?? ""} />
          </bdi>
        </span>
        {hasFilters && (
          <fieldset class="filters push-right">
            <legend class="unseen">What the conversation shows</legend>
            {filters.map(([filter, word]) => (
              <label key={filter}>
                <input
                  type="radio"
                  name="filter"
                  checked={open.conversation.filter.value === filter}
                  onChange={() => open.conversation.setFilter(filter)}
                />
                {word}
              </label>
            ))}
          </fieldset>
        )}
      </div>
      {showsFacts.value && (
        <WithFigures open={open} saysSo={true}>
          {({ SessionFactsSheet }, figures) => (
            <SessionFactsSheet
              open={open}
              figures={figures}
              onClose={() => {
                showsFacts.value = false;
              }}
            />
          )}
        </WithFigures>
      )}
      {said.value !== "" && (
        <p class="head-said" role="status">
          {said.value}
        </p>
      )}
    </header>
  );
}
