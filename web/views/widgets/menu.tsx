import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "./icon.tsx";

export interface MenuEntry {
  readonly label: string;
  /** A sentence below the label. */
  readonly about?: string;
  /** For what is on or off. */
  readonly isOn?: boolean;
  readonly isDangerous?: boolean;
  choose(): void;
}

interface MenuProps {
  /** The name of the button. */
  readonly label: string;
  readonly entries: readonly MenuEntry[];
  readonly children?: ComponentChildren;
}

/** The distance from the edges of the page, in CSS pixels. */
const edge = 8;

const taken: ReadonlySet<string> = new Set(["Escape", "Home", "End", "ArrowDown", "ArrowUp"]);

/** A button that opens a list of actions above everything else. */
export function Menu({ label, entries, children }: MenuProps): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();

  useLayoutEffect(() => {
    const { current: menu } = list;
    const at = button.current?.getBoundingClientRect();
    if (menu === null || at === undefined) return;
    menu.showPopover();
    const { offsetWidth: width, offsetHeight: height } = menu;
    const left = Math.min(Math.max(edge, at.right - width), innerWidth - width - edge);
    const below = at.bottom + 4;
    const top = below + height > innerHeight - edge ? Math.max(edge, at.top - 4 - height) : below;
    Object.assign(menu.style, { left: `${left}px`, top: `${top}px` });
    focusItem(menu, 0);
  }, [isOpen]);

  const close = (): void => {
    setOpen(false);
    button.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") close();
    else if (event.key === "Home") focusItem(list.current, 0);
    else if (event.key === "End") focusItem(list.current, -1);
    else if (move !== undefined)
      focusItem(list.current, itemsOf(list.current).indexOf(event.target as HTMLElement) + move);
    else if (event.key === "Tab") setOpen(false);
    // Letters are no commands of the page here.
    event.stopPropagation();
    if (taken.has(event.key)) event.preventDefault();
  };
  const onFocusOut = ({ relatedTarget, currentTarget }: FocusEvent): void => {
    if (relatedTarget !== button.current && !(currentTarget as Element).contains(relatedTarget as Node | null))
      setOpen(false);
  };
  const hasMarks = entries.some(({ isOn }) => isOn !== undefined);
  return (
    <div class="menu">
      <button
        ref={button}
        type="button"
        class="button bare square"
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        {children ?? <Icon name="more" />}
      </button>
      {isOpen && (
        <div
          ref={list}
          id={id}
          class="menu-list"
          role="menu"
          aria-label={label}
          popover="manual"
          onKeyDown={onKeyDown}
          onFocusOut={onFocusOut}
        >
          {entries.map((entry, index) => (
            <button
              key={entry.label}
              type="button"
              {...(entry.isOn === undefined
                ? { role: "menuitem" as const }
                : { role: "menuitemcheckbox" as const, "aria-checked": entry.isOn })}
              tabIndex={-1}
              aria-label={entry.label}
              aria-describedby={entry.about === undefined ? undefined : `${id}-${index}`}
              class={entry.isDangerous === true ? "is-bad" : ""}
              onClick={() => {
                close();
                entry.choose();
              }}
            >
              {hasMarks && <span class="menu-mark">{entry.isOn === true && <Icon name="check" />}</span>}
              <span>
                {entry.label}
                {entry.about !== undefined && <small id={`${id}-${index}`}>{entry.about}</small>}
              </span>
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function itemsOf(menu: HTMLElement | null): readonly HTMLElement[] {
  return Array.from(menu?.querySelectorAll<HTMLElement>("[role^=menuitem]") ?? []);
}

/** Focuses an item by its place, which wraps around. */
function focusItem(menu: HTMLElement | null, place: number): void {
  const items = itemsOf(menu);
  items.at(place % items.length)?.focus();
}
