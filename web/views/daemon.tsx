import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId } from "preact/hooks";
import type { DaemonInfo, SessionInfo } from "../../client/browser.ts";
import type { StoreInfo } from "../../protocol/daemon.ts";
import type { Metric } from "../../protocol/metrics-methods.ts";
import { type DaemonHealth, ReadHealth, type ReadyState } from "../state/daemon-health.ts";
import type { SessionRow } from "../state/sessions.ts";
import { Visible } from "../text/visible.tsx";
import { BackButton } from "./back-button.tsx";
import { usePage, useWorkspace } from "./context.ts";
import { DaemonLog } from "./daemon-log.tsx";
import { sizeWords } from "./items/long-text.tsx";
import { openSession } from "./moves.ts";
import { Icon } from "./widgets/icon.tsx";
import { Age, Time } from "./widgets/time.tsx";

/** What the daemon says about itself. It is read again while it is shown. */
export function DaemonView(): JSX.Element {
  const health = useWorkspace().part(ReadHealth);
  useEffect(() => health.watch(), []);
  const info = health.info.value;
  const ready = health.ready.value;
  return (
    <div class="sheet-page daemon">
      <header class="sheet-head">
        <BackButton />
        <h1>Daemon</h1>
        {health.readAt.value !== undefined && (
          <span class="push-right quiet">
            read at <Time at={health.readAt.value} />
          </span>
        )}
      </header>
      {ready.kind === "refused" && <p class="is-bad">{ready.words}</p>}
      {ready.kind === "known" && <Ready ready={ready.value} />}
      {info.kind === "asking" && <p class="quiet">Reading…</p>}
      {info.kind === "refused" && <p class="is-bad">{info.words}</p>}
      {info.kind === "known" && (
        <Sections info={info.value} checks={ready.kind === "known" ? ready.value.checks : undefined} />
      )}
      <Metrics health={health} />
      <DaemonLog />
    </div>
  );
}

function Ready({ ready }: { readonly ready: ReadyState }): JSX.Element {
  if (ready.reasons.length === 0) {
    return (
      <p class="daemon-sign is-good">
        <Icon name="finished" />
        Ready
      </p>
    );
  }
  return (
    <div class="daemon-sign is-bad" role="alert">
      <Icon name="failed" />
      <div>
        Not ready
        {ready.reasons.map((reason) => (
          <p key={reason}>
            <Visible text={reason} />
          </p>
        ))}
      </div>
    </div>
  );
}

interface SectionsProps {
  readonly info: DaemonInfo;
  readonly checks: ReadyState["checks"];
}

const places = {
  option: "by the option --pi",
  environment: "by the variable PI_RPCD_PI",
  configuration: "by the configuration file",
  path: "found in PATH",
  bundled: "the one of this package",
} as const;

const permissions: Readonly<Record<string, string>> = {
  observe: "look",
  prompt: "send and stop, answer questions",
  bash: "run shell commands",
  payload: "read complete requests to the provider",
  admin: "everything",
};

function Sections({ info, checks }: SectionsProps): JSX.Element {
  const { pi, store, liveRestore } = info;
  return (
    <>
      <Section title="Process">
        <Line name="Version">
          {info.version}, protocol {info.protocol}
        </Line>
        <Line name="Process">
          {info.pid}, since <Time at={info.startedAt} />
        </Line>
        <Line name="State directory">
          <span class="mono">
            <Visible text={info.stateDir} />
          </span>
        </Line>
        <Line name="Memory">{sizeWords(info.residentBytes)}, without the pi processes</Line>
        {checks !== undefined && <Line name="Event loop">{checks.eventLoopDelayMs} ms late</Line>}
        <Line name="Connections">{info.connections}</Line>
        {checks !== undefined && checks.lostLogLines > 0 && (
          <Line name="Log">
            <span class="is-bad">{checks.lostLogLines} lines could not be written</span>
          </Line>
        )}
        <Line name="This page may">
          {info.capabilities.map((capability) => permissions[capability] ?? capability).join("; ")}
        </Line>
      </Section>
      <Section title="pi">
        <Line name="Version">
          {pi.version}, {places[pi.source]}
        </Line>
        <Line name="Program">
          <span class="mono">
            <Visible text={pi.path} />
          </span>
          {checks?.pi === "missing" && <span class="is-bad"> does not exist any more</span>}
        </Line>
        <Line name="Started ahead">{info.warmChildren === 0 ? "none" : info.warmChildren}</Line>
        {liveRestore !== undefined && (
          <>
            <Line name="A restart">
              {liveRestore.available ? "leaves runs alone" : `ends runs: ${liveRestore.why ?? ""}`}
            </Line>
            <Line name="Of the former daemon">
              {liveRestore.restored} continued,{" "}
              <span class={liveRestore.lost > 0 ? "is-bad" : ""}>{liveRestore.lost} lost</span>
            </Line>
          </>
        )}
        <Line name="Sessions">
          {Object.entries(info.sessions)
            .map(([state, count]) => `${count} ${state}`)
            .join(", ") || "none"}
        </Line>
      </Section>
      <Children />
      {store !== undefined && <Store store={store} />}
    </>
  );
}

/** So many are listed. */
const maxChildren = 200;

/** Sessions that have a pi, or whose pi failed. */
function Children(): JSX.Element | null {
  const rows = useWorkspace()
    .sessions.groups.value.flatMap((group) => group.rows)
    .filter(({ info }) => info.pid !== undefined || info.restarts !== undefined || info.state === "crashed");
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>
        pi processes <span class="count">{rows.length}</span>
      </h2>
      {rows.length === 0 ? (
        <p class="quiet">None runs. A message starts one.</p>
      ) : (
        <section class="table-frame" tabIndex={0} aria-label="Table of pi processes">
          <table class="plain columns">
            <thead>
              <tr>
                <th scope="col">Session</th>
                <th scope="col">State</th>
                <th scope="col">Process</th>
                <th scope="col">Starts</th>
                <th scope="col">Failures</th>
                <th scope="col">Changed</th>
              </tr>
            </thead>
            <tbody>
              {rows.slice(0, maxChildren).map((row) => (
                <Child key={row.sessionId} row={row} />
              ))}
            </tbody>
          </table>
        </section>
      )}
      {rows.length > maxChildren && <p class="quiet">{rows.length - maxChildren} more are not shown.</p>}
    </section>
  );
}

function Child({ row }: { readonly row: SessionRow }): JSX.Element {
  const { app, looks } = usePage();
  const { sessionId, title, info } = row;
  return (
    <tr>
      <td>
        <button type="button" class="link cut child-name" onClick={() => openSession(app, looks, sessionId)}>
          <bdi>{title}</bdi>
        </button>
      </td>
      <td>{stateOf(info)}</td>
      <td>{info.pid ?? "none"}</td>
      <td>{info.generation}</td>
      <td>{failuresOf(info)}</td>
      <td>
        <Age at={info.updatedAt} />
      </td>
    </tr>
  );
}

function stateOf({ state, unresponsive }: SessionInfo): JSX.Element {
  if (unresponsive === undefined) return <span class={state === "crashed" ? "is-bad" : ""}>{state}</span>;
  return (
    <span class="is-bad">
      silent since <Time at={unresponsive.since} />
    </span>
  );
}

function failuresOf({ restarts }: SessionInfo): ComponentChildren {
  if (restarts === undefined) return "none";
  return (
    <span class="is-bad">
      {restarts.failures} in ten minutes
      {restarts.nextAt !== undefined && (
        <>
          , next try at <Time at={restarts.nextAt} />
        </>
      )}
    </span>
  );
}

function Store({ store }: { readonly store: StoreInfo }): JSX.Element {
  const { state, since, why, unwritten, bytes, copyFailure, damaged } = store;
  return (
    <Section title="Store">
      <Line name="State">
        {state === "open" ? (
          <span class="is-good">open</span>
        ) : (
          <span class="is-bad">
            failing since <Time at={since} />: {why ?? "writes are refused"}
          </span>
        )}
      </Line>
      <Line name="Size">{sizeWords(bytes)}</Line>
      <Line name="Not written yet">{unwritten === 0 ? "nothing" : `${unwritten} changes`}</Line>
      <Line name="Copy">
        {copyFailure === undefined ? "as planned" : <span class="is-bad">failed: {copyFailure}</span>}
      </Line>
      {damaged.length === 0 && <Line name="Damage">none was found</Line>}
      {damaged.map(({ path, at, why: damage, kept, lost }) => (
        <Line key={path} name="Damage">
          <span class="is-bad">{damage}</span> <Time at={at} />
          <br />
          Restored: {kept.sessions + kept.sessionsFromList + kept.sessionsFromFiles} sessions, {kept.prompts} prompts,{" "}
          {kept.deliveries} pushes. Lost: {lost.transactions} transactions, {lost.sessionIds.length} sessions.
          <br />
          <span class="mono">
            <Visible text={path} />
          </span>
        </Line>
      ))}
    </Section>
  );
}

/** Numbers that the daemon counts, on request. */
function Metrics({ health }: { readonly health: DaemonHealth }): JSX.Element {
  const metrics = health.metrics.value;
  return (
    <section class="metrics">
      <h2>Counters</h2>
      <p class="quiet">
        Starts and crashes, memory of the pi processes, what was dropped for slow readers. The delay of the event loop
        is measured from one reading to the next, also that of Prometheus.
      </p>
      {metrics.kind === "refused" && <p class="is-bad">{metrics.words}</p>}
      {metrics.kind === "known" && (
        <table class="plain">
          <tbody>{metrics.value.flatMap(linesOf)}</tbody>
        </table>
      )}
      <button
        type="button"
        class="button"
        disabled={metrics.kind === "asking"}
        onClick={() => void health.readMetrics()}
      >
        {metrics.kind === "known" ? "Read them again" : "Read the counters"}
      </button>
    </section>
  );
}

function linesOf({ name, help, samples = [], count, sum }: Metric): readonly JSX.Element[] {
  const unit = name.replace(/_total$/, "");
  const title = help.replace(/\.$/, "");
  if (count !== undefined) {
    const mean = count === 0 ? "none yet" : `${count} times, ${numberWords(unit, (sum ?? 0) / count)} on average`;
    return [
      <Line key={name} name={title}>
        {mean}
      </Line>,
    ];
  }
  const values = samples.map(({ labels = {}, value }) =>
    [
      numberWords(unit, value),
      ...Object.values(labels).map((label) => (/^[\d.]+$/.test(label) ? `(${label})` : label)),
    ].join(" "),
  );
  return [
    <Line key={name} name={title}>
      {values.join(", ") || "none"}
    </Line>,
  ];
}

function numberWords(unit: string, value: number): string {
  if (unit.endsWith("_bytes")) return sizeWords(Math.round(value));
  if (unit.endsWith("_seconds")) return value < 1 ? `${Math.round(value * 1_000)} ms` : `${Math.round(value)} s`;
  return value.toLocaleString("en");
}

function Section({ title, children }: { readonly title: string; readonly children: ComponentChildren }): JSX.Element {
  const id = useId();
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <table class="plain" aria-labelledby={id}>
        <tbody>{children}</tbody>
      </table>
    </section>
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
