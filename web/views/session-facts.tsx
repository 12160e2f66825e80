import type { ComponentChildren, JSX } from "preact";
import type { Figures } from "../state/figures.ts";
import type { OpenSession } from "../state/open-session.ts";
import { Visible } from "../text/visible.tsx";
import { FigureLines } from "./figure-lines.tsx";
import { Sheet } from "./widgets/sheet.tsx";
import { Time } from "./widgets/time.tsx";

interface SessionFactsProps {
  readonly open: OpenSession;
  readonly figures: Figures;
}

/** The same over the page, where it has no column of its own. */
export function SessionFactsSheet({ onClose, ...facts }: SessionFactsProps & { onClose(): void }): JSX.Element {
  return (
    <Sheet title="About this session" onClose={onClose}>
      {(close) => (
        <>
          <SessionFacts {...facts} />
          <div class="row-of-buttons">
            <button type="button" class="button" onClick={close}>
              Close
            </button>
          </div>
        </>
      )}
    </Sheet>
  );
}

/** What is known about the session that is shown. */
export function SessionFacts({ open, figures }: SessionFactsProps): JSX.Element {
  const info = open.info.value;
  return (
    <div class="session-facts">
      <FigureLines open={open} figures={figures} />
      <section>
        <h2>Session</h2>
        {info === undefined ? (
          <p class="quiet">Nothing is known yet.</p>
        ) : (
          <dl class="facts">
            <Fact name="Directory">
              <span class="mono">
                <Visible text={info.cwd} />
              </span>
            </Fact>
            <Fact name="Model">
              {info.model === undefined ? "not known yet" : `${info.model.provider}/${info.model.id}`}
            </Fact>
            {info.thinkingLevel !== undefined && <Fact name="Thinking">{info.thinkingLevel}</Fact>}
            {info.profile !== undefined && <Fact name="Profile">{info.profile}</Fact>}
            <Fact name="Created">
              <Time at={info.createdAt} />
            </Fact>
            <Fact name="Changed">
              <Time at={info.updatedAt} />
            </Fact>
            <Fact name="Project">
              {info.projectTrust === "approved" ? "its settings are used" : "its settings are not used"}
            </Fact>
          </dl>
        )}
      </section>
      {info !== undefined && (
        <section>
          <h2>pi</h2>
          <dl class="facts">
            <Fact name="State">{stateWords[info.state]}</Fact>
            <Fact name="Started">{info.generation === 1 ? "once" : `${info.generation} times`}</Fact>
            {info.pid !== undefined && <Fact name="Process">{info.pid}</Fact>}
            {info.control?.controller !== undefined && (
              <Fact name="Controlled by">
                <bdi>{info.control.controller.name ?? info.control.controller.clientId}</bdi>
              </Fact>
            )}
            {info.mcpServers !== undefined && <Fact name="MCP">{info.mcpServers.join(", ")}</Fact>}
          </dl>
        </section>
      )}
      {info?.labels !== undefined && Object.keys(info.labels).length > 0 && (
        <section>
          <h2>Labels</h2>
          <ul class="labels">
            {Object.entries(info.labels).map(([name, value]) => (
              <li key={name} class="tag">
                {name}={value}
              </li>
            ))}
          </ul>
        </section>
      )}
      {info !== undefined && info.file !== "" && (
        <section>
          <h2>File</h2>
          <p class="mono file">
            <Visible text={info.file} />
          </p>
        </section>
      )}
    </div>
  );
}

const stateWords = {
  starting: "starting",
  idle: "idle",
  running: "in a run",
  hibernated: "asleep",
  crashed: "ended unexpectedly",
  closing: "ending",
  closed: "closed",
} as const;

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}
