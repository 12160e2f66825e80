import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

interface SheetProps {
  readonly title: string;
  readonly children: ComponentChildren;
  /** Called when it closes, also by Escape. */
  onClose(): void;
}

/** A window over the page, which keeps the focus until it closes. */
export function Sheet({ title, children, onClose }: SheetProps): JSX.Element {
  const sheet = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => sheet.current?.showModal(), []);
  return (
    <dialog
      ref={sheet}
      class="sheet"
      aria-labelledby={id}
      onClose={onClose}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}
