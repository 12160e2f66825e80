import { useComputed, useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import type { Choices, CommandChoice } from "../state/choices.ts";
import type { DraftView } from "../state/composer.ts";

/** More are found by typing. */
const maxShown = 50;

export interface FittingCommands {
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
export function useCommands(draft: DraftView, choices: Choices): FittingCommands {
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
