import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { Outcome } from "../state/outcome.ts";
import { useOffer, usePage, useWorkspace } from "./context.ts";
import { Later } from "./later.tsx";
import { goBack } from "./moves.ts";
import type { SheetOfSession } from "./session-sheet.tsx";
import { Menu, type MenuEntry } from "./widgets/menu.tsx";

interface SessionMenuProps {
  readonly sessionId: string;
  readonly title: string;
  /** The name that it has, if it has one. */
  readonly name: string;
  /** Whether it has no pi. */
  readonly isAsleep: boolean;
  /** Gets why something was refused. */
  readonly said: Signal<string>;
  /** Further entries, before these, of the session that is shown. All are in the list of all actions then. */
  readonly entries?: readonly MenuEntry[];
}

/** What people can do with a session: rename, hibernate, close, delete. */
export function SessionMenu({ sessionId, title, name, isAsleep, said, entries }: SessionMenuProps): JSX.Element {
  const { app, looks } = usePage();
  const { sessions, selected } = useWorkspace();
  const sheet = useSignal<SheetOfSession | "none">("none");
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
  const all: readonly MenuEntry[] = [
    ...(entries ?? []),
    { label: "Rename…", choose: show("rename") },
    {
      label: "Hibernate",
      about: "Ends its pi; the next message starts one.",
      choose: () => void tell(sessions.hibernate(sessionId)),
    },
    { label: "Close…", about: "Ends its pi and takes it from this list; its file stays.", choose: show("close") },
    { label: "Delete…", isDangerous: true, choose: show("delete") },
  ];
  useOffer({ about: title, entries: entries === undefined ? [] : all });
  return (
    <>
      <Menu label={`Actions of ${title}`} entries={all} />
      {sheet.value !== "none" && (
        <Later
          show={({ SessionSheet }) => (
            <SessionSheet
              what={sheet.value}
              title={title}
              name={name}
              isAsleep={isAsleep}
              onClose={show("none")}
              rename={(name) => void tell(sessions.rename(sessionId, name))}
              close={() => void leave(sessions.close(sessionId))}
              remove={() => void leave(sessions.remove(sessionId))}
            />
          )}
        />
      )}
    </>
  );
}
