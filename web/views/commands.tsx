import { useComputed, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useId } from "preact/hooks";
import type { Choices, CommandChoice } from "../state/choices.ts";
import type { DraftView } from "../state/composer.ts";
import { Visible } from "../text/visible.tsx";

/** More are found by typing. */
const maxShown = 50;

interface CommandList {
  readonly isShown: boolean;
  readonly found: readonly CommandChoice[];
  readonly at: number;
  readonly listId: string;
  readonly activeId: string | undefined;
  choose(command: CommandChoice): void;
  /** Whether the list took the key. */
  onKeyDown(event: KeyboardEvent): boolean;
}

/** The commands that fit a draft that begins with `/`. */
export function useCommands(draft: DraftView, choices: Choices): CommandList {
  const listId = useId();
  const at = useSignal(0);
  /** The text for which Escape has hidden the list. */
  const hiddenFor = useSignal<string | undefined>(undefined);
  const typed = useComputed(() => /^\/([^\s]*)$/.exec(draft.text.value)?.[1]).value;
  const known = choices.commands.value;
  const all = known.kind === "known" ? known.value : [];
  const found = typed === undefined ? [] : all.filter(({ name }) => name.includes(typed)).slice(0, maxShown);
  const isShown = typed !== undefined && hiddenFor.value !== draft.text.value;
  const place = Math.min(at.value, Math.max(found.length - 1, 0));
  const choose = ({ name }: CommandChoice): void => draft.write(`/${name} `);
  const onKeyDown = ({ key, altKey, shiftKey }: KeyboardEvent): boolean => {
    const command = found[place];
    if (!isShown || altKey || shiftKey) return false;
    if (key === "Escape") {
      hiddenFor.value = draft.text.value;
      return true;
    }
    if (command === undefined) return false;
    if (key === "ArrowDown" || key === "ArrowUp") {
      at.value = (place + (key === "ArrowDown" ? 1 : found.length - 1)) % found.length;
      return true;
    }
    // A whole name is sent by Enter, as without the list.
    if (key === "Tab" || (key === "Enter" && command.name !== typed)) {
      choose(command);
      return true;
    }
    return false;
  };
  const activeId = isShown && found.length > 0 ? `${listId}-${place}` : undefined;
  return { isShown, found, at: place, listId, activeId, choose, onKeyDown };
}

interface CommandsProps {
  readonly commands: CommandList;
  readonly choices: Choices;
}

export function Commands({ commands, choices }: CommandsProps): JSX.Element | null {
  const { isShown, found, at, listId, choose } = commands;
  const known = choices.commands.value;
  if (!isShown) return null;
  if (known.kind !== "known") {
    return (
      <p class="commands-unknown">
        {known.kind === "asking" ? (
          "Asking pi for its commands…"
        ) : (
          <>
            {known.kind === "refused" ? known.words : "The commands of this session are not known."}{" "}
            <button type="button" class="link" onClick={() => void choices.ask()}>
              {choices.isAsleep.value ? "Start pi and ask it" : "Ask pi"}
            </button>
          </>
        )}
      </p>
    );
  }
  if (found.length === 0) return <p class="commands-unknown">No command fits.</p>;
  return (
    <div class="commands" role="listbox" id={listId} aria-label="Commands of pi">
      {found.map((command, index) => (
        <div
          key={`${command.source} ${command.name}`}
          id={`${listId}-${index}`}
          role="option"
          tabIndex={-1}
          aria-selected={index === at}
          ref={(element) => {
            if (index === at) element?.scrollIntoView({ block: "nearest" });
          }}
          onMouseDown={(event) => {
            // The field keeps the focus.
            event.preventDefault();
            choose(command);
          }}
        >
          <span class="mono">
            /<Visible text={command.name} />
          </span>
          <span class="quiet cut">
            <Visible text={command.description} />
          </span>
        </div>
      ))}
    </div>
  );
}
