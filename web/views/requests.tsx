import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Figures } from "../state/figures.ts";
import type { OpenSession } from "../state/open-session.ts";
import { type ShownRequest, sumsOf } from "../state/request-facts.ts";
import type { Requests } from "../state/requests.ts";
import { heightOf, onClock, type Stretch, tokensOf } from "../state/tape.ts";
import { RequestDetails } from "./request-details.tsx";
import { causeWords, kindOf, modelName, outcomeSigns } from "./request-words.ts";
import { Legend, TokensBar } from "./tape-parts.tsx";
import { Count, msWords, shortCount, Unknown, Usd } from "./widgets/figures.tsx";
import { Icon } from "./widgets/icon.tsx";

/** So many rows are built at once. */
const rowsShown = 100;
/** The width of the bars of time, and the length of a long pause on the clock, of all that is shown. */
const barWidth = 220;
const pauseShare = 0.03;

interface RequestsViewProps {
  readonly open: OpenSession;
  readonly figures: Figures;
}

/** The requests of a session as a table: the tape in numbers, and how long each took. */
export function RequestsView({ open, figures }: RequestsViewProps): JSX.Element {
  const { requests } = figures;
  const state = requests.state.value;
  const all = requests.all.value;
  if (state.kind === "refused") {
    return (
      <p class="is-bad">
        {state.words}{" "}
        <button type="button" class="link" onClick={() => void requests.reload()}>
          Read again
        </button>
      </p>
    );
  }
  if (all.length === 0) {
    return (
      <div class="empty">
        <h2>{state.kind === "loading" ? "Reading the requests…" : "No requests yet"}</h2>
        {state.kind === "ready" && (
          <p>
            Each request to the model's provider will be here, with what it read, cost and took. Your first message
            makes one.
          </p>
        )}
      </div>
    );
  }
  return (
    <>
      <RequestTable requests={requests} all={all} />
      <SumWords all={all} isWhole={requests.isWhole.value} />
      <RequestDetails open={open} figures={figures} />
    </>
  );
}

function SumWords({ all, isWhole }: { readonly all: readonly ShownRequest[]; readonly isWhole: boolean }): JSX.Element {
  const { tokens, usd, unknown } = sumsOf(all);
  return (
    <p class="sums">
      {isWhole ? "Together " : `The newest ${all.length} requests together: `}
      <Count value={tokens} /> tokens, <Usd value={usd} />.
      {unknown > 0 && ` Of ${unknown === 1 ? "one request" : `${unknown} requests`} nothing was reported.`}
    </p>
  );
}

interface TableProps {
  readonly requests: Requests;
  readonly all: readonly ShownRequest[];
}

function RequestTable({ requests, all }: TableProps): JSX.Element {
  const byClock = useSignal(false);
  const more = useSignal(0);
  const frame = useRef<HTMLElement>(null);
  const chosen = requests.chosen.value;
  // A request that was chosen on the tape is always there.
  const first = Math.max(0, Math.min(all.length - rowsShown - more.value, (chosen?.number ?? all.length) - 1));
  const shown = all.slice(first);
  const most = Math.max(1, ...shown.map((request) => heightOf(tokensOf(request))));
  const stretches = byClock.value ? onClock(shown, pauseOf(shown)) : shown.map(fromLeft);
  const span = Math.max(1, ...stretches.map((stretch) => stretch?.to ?? 0));
  useEffect(() => {
    frame.current?.querySelector('[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
  }, [chosen?.id]);
  return (
    <>
      <div class="figures-head">
        <Legend signs={["waiting", "output", "whole", "tools"]} />
        <label class="switch push-right">
          <input
            type="checkbox"
            checked={byClock.value}
            onChange={() => {
              byClock.value = !byClock.value;
            }}
          />
          Bars by the clock
        </label>
      </div>
      {first > 0 && (
        <button
          type="button"
          class="link"
          onClick={() => {
            more.value = all.length - first;
          }}
        >
          Show the {Math.min(first, rowsShown)} before
        </button>
      )}
      <section ref={frame} class="table-frame" aria-label="Table of the requests" tabIndex={0}>
        <table class="requests">
          <thead>
            <tr>
              <th scope="col" class="number">
                #
              </th>
              <th scope="col">Model</th>
              <th scope="col">Status</th>
              <th scope="col" class="number">
                Tokens
              </th>
              <th scope="col">Read and written</th>
              <th scope="col" class="number">
                Cost
              </th>
              <th scope="col">Time</th>
              <th scope="col" class="number">
                Total
              </th>
            </tr>
          </thead>
          <tbody>
            {shown.map((request, index) => (
              <RequestRow
                key={request.id}
                request={request}
                isChosen={request.id === chosen?.id}
                most={most}
                stretch={stretches[index]}
                span={span}
                choose={() => requests.choose(request.id)}
              />
            ))}
          </tbody>
        </table>
      </section>
    </>
  );
}

interface RowProps {
  readonly request: ShownRequest;
  readonly isChosen: boolean;
  readonly most: number;
  readonly stretch: Stretch | undefined;
  readonly span: number;
  choose(): void;
}

function RequestRow({ request, isChosen, most, stretch, span, choose }: RowProps): JSX.Element {
  const { number, model, outcome, status, usage, lost, totalMs } = request;
  const [icon, tone, word] = outcomeSigns[outcome];
  const tokens = tokensOf(request);
  const kind = kindOf(request);
  const none = "nothing was reported";
  return (
    <tr data-chosen={isChosen} data-request={request.id}>
      <th scope="row" class="number">
        <button
          type="button"
          class="request-open"
          aria-current={isChosen}
          aria-label={`Request ${number}`}
          onClick={choose}
        >
          {number}
        </button>
      </th>
      <td class="model">
        {model === undefined ? (
          kind === "" && <Unknown why="the model is not known" />
        ) : (
          <bdi title={model}>{modelName(model)}</bdi>
        )}
        {kind !== "" && <span class="quiet"> {kind}</span>}
      </td>
      <td class={tone}>
        <span class="status">
          <Icon name={icon} />
          {word}
          {outcome === "failed" && status !== undefined && ` ${status}`}
        </span>
      </td>
      <td class="number">
        <Count value={usage?.totalTokens} unknown={none} />
      </td>
      <td class="read">
        {tokens !== undefined && <TokensBar tokens={tokens} most={most} />}
        {lost !== undefined && (
          <span class="is-bad lost" title={lost.cause === undefined ? undefined : causeWords(lost.cause)}>
            ▾ {shortCount(lost.tokens)} lost
          </span>
        )}
      </td>
      <td class="number">
        <Usd value={usage?.cost.total} unknown={none} />
      </td>
      <td>
        <TimeBar request={request} stretch={stretch} span={span} />
      </td>
      <td class="number">{totalMs === undefined ? <Unknown why="the time is not known" /> : msWords(totalMs)}</td>
    </tr>
  );
}

interface TimeBarProps {
  readonly request: ShownRequest;
  readonly stretch: Stretch | undefined;
  readonly span: number;
}

function TimeBar({ request, stretch, span }: TimeBarProps): JSX.Element | null {
  const { totalMs, untilAnswerMs, toolsMs = 0 } = request;
  if (stretch === undefined || totalMs === undefined) return null;
  const scale = (ms: number): number => (ms / span) * barWidth;
  const x = Math.min(barWidth - 2, scale(stretch.from));
  const waiting = Math.max(0, scale(untilAnswerMs ?? 0));
  const answering = Math.max(1.5, scale(totalMs - (untilAnswerMs ?? 0)));
  const tools = scale(toolsMs);
  const words = timeWords(request);
  return (
    <svg
      class="line-chart time-bar"
      viewBox={`0 0 ${barWidth} 12`}
      preserveAspectRatio="none"
      role="img"
      aria-label={words}
    >
      <title>{words}</title>
      {untilAnswerMs !== undefined && (
        <rect x={x + 0.5} y="0.5" width={Math.max(1, waiting - 1)} height="11" class="line-waiting" />
      )}
      <rect
        x={x + waiting}
        y="0"
        width={answering}
        height="12"
        class={untilAnswerMs === undefined ? "fill-whole" : "fill-output"}
      />
      {toolsMs > 0 && (
        <rect
          x={x + waiting + answering + 1}
          y="0"
          width={Math.max(1.5, tools - 1)}
          height="12"
          fill="url(#fill-tools)"
        />
      )}
    </svg>
  );
}

function timeWords({ totalMs, untilAnswerMs, toolsMs }: ShownRequest): string {
  if (totalMs === undefined) return "the time is not known";
  return [
    ...(untilAnswerMs === undefined
      ? [`${msWords(totalMs)} for request and answer`]
      : [`${msWords(untilAnswerMs)} until the answer`, `${msWords(Math.max(0, totalMs - untilAnswerMs))} for it`]),
    ...(toolsMs === undefined ? [] : [`${msWords(toolsMs)} for its tools`]),
  ].join(", ");
}

function fromLeft({ totalMs, toolsMs = 0 }: ShownRequest): Stretch | undefined {
  return totalMs === undefined ? undefined : { from: 0, to: totalMs + toolsMs };
}

/** The length of a pause on the clock. */
function pauseOf(requests: readonly ShownRequest[]): number {
  const busy = requests.reduce((sum, { totalMs = 0, toolsMs = 0 }) => sum + totalMs + toolsMs, 0);
  return Math.max(1_000, busy * pauseShare);
}
