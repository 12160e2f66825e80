import type { JSX } from "preact";
import type { Choices } from "../state/choices.ts";
import { Visible } from "../text/visible.tsx";
import type { FittingCommands } from "./commands.ts";

interface CommandListProps {
  readonly commands: FittingCommands;
  readonly choices: Choices;
}

/** The commands that fit, to choose one. */
export function CommandList({ commands, choices }: CommandListProps): JSX.Element {
  const { found, at, listId, choose } = commands;
  const known = choices.commands.value;
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
