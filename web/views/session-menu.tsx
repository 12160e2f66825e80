import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { Outcome } from "../state/outcome.ts";
import { usePage, useWorkspace } from "./context.ts";
import { goBack } from "./moves.ts";
import { Menu, type MenuEntry } from "./widgets/menu.tsx";
import { Sheet } from "./widgets/sheet.tsx";

interface SessionMenuProps {
  readonly sessionId: string;
  readonly title: string;
  /** The name that it has, if it has one. */
  readonly name: string;
  /** Whether it has no pi. */
  readonly isAsleep: boolean;
  /** Gets why something was refused. */
  readonly said: Signal<string>;
  /** Further entries, before these. */
  readonly entries?: readonly MenuEntry[];
}

/** What people can do with a session: rename, hibernate, close, delete. */
export function SessionMenu({ sessionId, title, name, isAsleep, said, entries = [] }: SessionMenuProps): JSX.Element {
  const { app, looks } = usePage();
  const { sessions, selected } = useWorkspace();
  const sheet = useSignal<"none" | "rename" | "close" | "delete">("none");
  const show = (name: typeof sheet.value) => () => {
    sheet.value = name;
  };
  const tell = async (action: Promise<Outcome>): Promise<boolean> => {
    const outcome = await action;
    said.value = outcome.kind === "refused" ? outcome.words : "";
    return outcome.kind === "done";
  };
  const leave = async (action: Promise<Outcome>): Promise<void> => {
    if (!(await tell(action)) || selected.value?.sessionId !== sessionId) return;
    app.workspace.value?.select(undefined);
    goBack(looks);
  };
  return (
    <>
      <Menu
        label={`Actions of ${title}`}
        entries={[
          ...entries,
          { label: "Rename…", choose: show("rename") },
          {
            label: "Hibernate",
            about: "Ends its pi; the next message starts one.",
            choose: () => void tell(sessions.hibernate(sessionId)),
          },
          { label: "Close…", about: "Ends its pi and takes it from this list; its file stays.", choose: show("close") },
          { label: "Delete…", isDangerous: true, choose: show("delete") },
        ]}
      />
      {sheet.value === "rename" && (
        <RenameSheet
          name={name}
          isAsleep={isAsleep}
          onClose={show("none")}
          rename={(name) => void tell(sessions.rename(sessionId, name))}
        />
      )}
      {sheet.value === "close" && (
        <ConfirmSheet
          title="Close this session?"
          about="Its pi ends, with a run if there is one, and the daemon forgets the session. Its file stays: “Open…” brings it back."
          verb="Close it"
          onClose={show("none")}
          act={() => void leave(sessions.close(sessionId))}
        />
      )}
      {sheet.value === "delete" && (
        <ConfirmSheet
          title="Delete this session?"
          about={`“${title}” and its file are deleted permanently. Its pi ends, with a run if there is one.`}
          verb="Delete it"
          onClose={show("none")}
          act={() => void leave(sessions.remove(sessionId))}
        />
      )}
    </>
  );
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
