import type { ComponentChildren, JSX } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

interface SheetProps {
  readonly title: string;
  /** A class of its own. */
  readonly kind?: string;
  /** Called when it has closed, by its content or by Escape. */
  onClose(): void;
  /** Its content. What had the focus before gets it back when the content closes the sheet. */
  children(close: () => void): ComponentChildren;
}

/** A window over the page, which keeps the focus until it closes. */
export function Sheet({ title, kind = "", onClose, children }: SheetProps): JSX.Element {
  const sheet = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => sheet.current?.showModal(), []);
  return (
    <dialog
      ref={sheet}
      class={`sheet ${kind}`}
      aria-labelledby={id}
      onClose={onClose}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <h2 id={id}>{title}</h2>
      {children(() => sheet.current?.close())}
    </dialog>
  );
}
