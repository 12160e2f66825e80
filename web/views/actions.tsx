import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useId, useRef } from "preact/hooks";
import { Visible } from "../text/visible.tsx";
import { usePage, useWorkspace } from "./context.ts";
import { keyedActions } from "./key-words.ts";
import { Keys } from "./keys.tsx";
import { openSession } from "./moves.ts";
import type { Offer } from "./place.ts";
import { Icon } from "./widgets/icon.tsx";
import { Sheet } from "./widgets/sheet.tsx";

/** More are found by typing. */
const maxShown = 60;

interface Action {
  readonly label: string;
  /** What it is about, as foreign text. */
  readonly about: string;
  readonly keys?: readonly string[] | undefined;
  readonly isOn?: boolean | undefined;
  act(): void;
}

/** Everything that one can do where one is: what menus and buttons offer there, the places, the sessions. */
export function Actions(): JSX.Element {
  const { looks } = usePage();
  const actions = useActions();
  return (
    <Sheet
      title="All actions"
      onClose={() => {
        if (looks.sheet.value === "actions") looks.sheet.value = undefined;
      }}
    >
      {(close) => (
        <ActionList
          actions={actions}
          choose={(action) => {
            // First: what had the focus before has it again, and what the action shows can get it.
            close();
            looks.sheet.value = undefined;
            action.act();
          }}
        />
      )}
    </Sheet>
  );
}

function useActions(): readonly Action[] {
  const { app, looks } = usePage();
  const { sessions, selected } = useWorkspace();
  const offers = [...looks.offers].map((read) => read());
  const ofView = offers.filter(({ isOfTab }) => isOfTab !== true).flatMap(actionsOf);
  const ofTab = offers.filter(({ isOfTab }) => isOfTab === true).flatMap(actionsOf);
  const own = keyedActions(app, looks).flatMap(({ does, keys, act }): Action[] =>
    act === undefined ? [] : [{ label: `${does.charAt(0).toUpperCase()}${does.slice(1)}`, about: "", keys, act }],
  );
  const others = sessions.rows.value.filter(({ sessionId }) => sessionId !== selected.value?.sessionId);
  const opening = others.map(
    ({ sessionId, title, info }): Action => ({
      label: title,
      about: `open the session in ${info.cwd}`,
      act: () => openSession(app, looks, sessionId),
    }),
  );
  return [...ofView, ...own, ...opening, ...ofTab];
}

function actionsOf({ about, entries }: Offer): readonly Action[] {
  return entries.map(({ label, isOn, choose }) => ({ label, about, isOn, act: choose }));
}

interface ActionListProps {
  readonly actions: readonly Action[];
  choose(action: Action): void;
}

function ActionList({ actions, choose }: ActionListProps): JSX.Element {
  const id = useId();
  const text = useSignal("");
  const wish = useSignal(0);
  const list = useRef<HTMLDivElement>(null);
  const fitting = found(actions, text.value);
  const shown = fitting.slice(0, maxShown);
  const at = Math.min(wish.value, Math.max(shown.length - 1, 0));
  const moveTo = (place: number): void => {
    wish.value = (place + shown.length) % Math.max(shown.length, 1);
    list.current?.children[wish.value]?.scrollIntoView({ block: "nearest" });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.isComposing || event.altKey || event.ctrlKey || event.metaKey) return;
    const { key } = event;
    const by = { ArrowDown: 1, ArrowUp: -1 }[key];
    const action = shown[at];
    if (by !== undefined) moveTo(at + by);
    else if (key === "Enter" && action !== undefined && !event.repeat) choose(action);
    else return;
    event.preventDefault();
  };
  return (
    <div class="actions">
      <input
        class="field"
        type="text"
        role="combobox"
        aria-label="Find an action or a session"
        placeholder="Find an action or a session"
        aria-expanded={shown.length > 0}
        aria-autocomplete="list"
        aria-controls={id}
        aria-activedescendant={shown.length > 0 ? `${id}-${at}` : undefined}
        autoComplete="off"
        spellcheck={false}
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
          wish.value = 0;
          if (list.current !== null) list.current.scrollTop = 0;
        }}
        onKeyDown={onKeyDown}
      />
      <div ref={list} class="commands" role="listbox" id={id} aria-label="Actions">
        {shown.map((action, index) => (
          <div
            key={`${action.about} ${action.label} ${index}`}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            onMouseDown={(event) => {
              // The field keeps the focus until the list closes.
              event.preventDefault();
              choose(action);
            }}
          >
            <span class="action-name">
              <Visible text={action.label} />
              {action.isOn === true && (
                <span class="quiet">
                  {" "}
                  <Icon name="check" /> on
                </span>
              )}
            </span>
            <span class="quiet cut">
              <Visible text={action.about} />
            </span>
            {action.keys !== undefined && (
              <span class="action-keys">
                <Keys keys={action.keys} />
              </span>
            )}
          </div>
        ))}
      </div>
      <p class="quiet" role="status">
        {shown.length === 0
          ? "No action fits."
          : fitting.length > shown.length
            ? `${fitting.length - shown.length} more are found by typing.`
            : ""}
      </p>
    </div>
  );
}

/** The actions that have all words; first those whose name begins with them. */
function found(actions: readonly Action[], text: string): readonly Action[] {
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/);
  const fitting = actions.filter(({ label, about }) => {
    const all = `${label} ${about}`.toLowerCase();
    return words.every((word) => all.includes(word));
  });
  const begins = ({ label }: Action): boolean => label.toLowerCase().startsWith(wanted);
  return wanted === "" ? fitting : [...fitting.filter(begins), ...fitting.filter((action) => !begins(action))];
}
