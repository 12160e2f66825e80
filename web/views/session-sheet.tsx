import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { Sheet } from "./widgets/sheet.tsx";

export type SheetOfSession = "rename" | "close" | "delete";

interface SessionSheetProps {
  readonly what: SheetOfSession | "none";
  readonly title: string;
  readonly name: string;
  readonly isAsleep: boolean;
  rename(name: string): void;
  close(): void;
  remove(): void;
  onClose(): void;
}

/** Asks for a session's name, or whether it is to be closed or deleted. */
export function SessionSheet({ what, title, onClose, close, remove, ...props }: SessionSheetProps): JSX.Element | null {
  switch (what) {
    case "none":
      return null;
    case "rename":
      return <RenameSheet {...props} onClose={onClose} />;
    case "close":
      return (
        <ConfirmSheet
          title="Close this session?"
          about="Its pi ends, with a run if there is one, and the daemon forgets the session. Its file stays: “Open…” brings it back."
          verb="Close it"
          onClose={onClose}
          act={close}
        />
      );
    case "delete":
      return (
        <ConfirmSheet
          title="Delete this session?"
          about={`“${title}” and its file are deleted permanently. Its pi ends, with a run if there is one.`}
          verb="Delete it"
          onClose={onClose}
          act={remove}
        />
      );
  }
}

interface ConfirmProps {
  readonly title: string;
  readonly about: string;
  readonly verb: string;
  act(): void;
  onClose(): void;
}

function ConfirmSheet({ title, about, verb, act, onClose }: ConfirmProps): JSX.Element {
  return (
    <Sheet title={title} onClose={onClose}>
      {(close) => (
        <>
          <p>{about}</p>
          <div class="row-of-buttons">
            <button type="button" class="button" onClick={close}>
              Keep it
            </button>
            <button
              type="button"
              class="button stop"
              onClick={() => {
                close();
                act();
              }}
            >
              {verb}
            </button>
          </div>
        </>
      )}
    </Sheet>
  );
}

interface RenameProps {
  readonly name: string;
  readonly isAsleep: boolean;
  rename(name: string): void;
  onClose(): void;
}

function RenameSheet({ name, isAsleep, rename, onClose }: RenameProps): JSX.Element {
  const text = useSignal(name);
  return (
    <Sheet title="Rename this session" onClose={onClose}>
      {(close) => (
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault();
            close();
            rename(text.value.trim());
          }}
        >
          <label>
            <span>Name</span>
            <input
              class="field"
              required={true}
              maxLength={200}
              value={text.value}
              onInput={({ currentTarget }) => {
                text.value = currentTarget.value;
              }}
            />
          </label>
          {isAsleep && <p class="quiet">pi writes the name, so this starts the session's pi.</p>}
          <div class="row-of-buttons">
            <button type="submit" class="button primary">
              Rename
            </button>
            <button type="button" class="button" onClick={close}>
              Cancel
            </button>
          </div>
        </form>
      )}
    </Sheet>
  );
}
