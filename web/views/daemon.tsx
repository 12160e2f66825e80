import type { ComponentChildren, JSX } from "preact";
import { Visible } from "../text/visible.tsx";
import { usePage } from "./context.ts";
import { sizeWords } from "./items/long-text.tsx";
import { goBack } from "./moves.ts";
import { Icon } from "./widgets/icon.tsx";
import { Time } from "./widgets/time.tsx";

/** What the daemon says about itself. */
export function DaemonView(): JSX.Element {
  const { app, looks } = usePage();
  const connection = app.connection.value;
  const daemon = connection.kind === "connected" ? connection.daemon : undefined;
  return (
    <div class="sheet-page">
      <header class="sheet-head">
        <button
          type="button"
          class="button bare square back"
          aria-label="Back to the sessions"
          onClick={() => goBack(looks)}
        >
          <Icon name="back" />
        </button>
        <h1>Daemon</h1>
      </header>
      {daemon === undefined ? (
        <p class="quiet">It is not known: there is no connection.</p>
      ) : (
        <table class="plain">
          <tbody>
            <Line name="Version">
              {daemon.version}, protocol {daemon.protocol}
            </Line>
            <Line name="Process">
              {daemon.pid}, since <Time at={daemon.startedAt} />
            </Line>
            <Line name="State directory">
              <span class="mono">
                <Visible text={daemon.stateDir} />
              </span>
            </Line>
            <Line name="pi">
              {daemon.pi.version}{" "}
              <span class="mono quiet">
                <Visible text={daemon.pi.path} />
              </span>
            </Line>
            <Line name="Sessions">
              {Object.entries(daemon.sessions)
                .map(([state, count]) => `${count} ${state}`)
                .join(", ") || "none"}
            </Line>
            <Line name="Started ahead">{daemon.warmChildren === 0 ? "no pi" : `${daemon.warmChildren} pi`}</Line>
            <Line name="Connections">{daemon.connections}</Line>
            <Line name="Memory">{sizeWords(daemon.residentBytes)}, without the pi processes</Line>
            {daemon.store !== undefined && (
              <Line name="Store">
                {daemon.store.state === "open" ? (
                  `open, ${sizeWords(daemon.store.bytes)}`
                ) : (
                  <span class="is-bad">failing: {daemon.store.why ?? "writes are refused"}</span>
                )}
              </Line>
            )}
            {daemon.liveRestore !== undefined && (
              <Line name="A restart">
                {daemon.liveRestore.available ? "leaves runs alone" : `ends runs: ${daemon.liveRestore.why ?? ""}`}
              </Line>
            )}
          </tbody>
        </table>
      )}
    </div>
  );
}

function Line({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{children}</td>
    </tr>
  );
}
