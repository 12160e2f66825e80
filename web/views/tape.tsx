import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { Figures } from "../state/figures.ts";
import type { OpenSession } from "../state/open-session.ts";
import { type Bar, barsOf, heightOf, tokenKinds } from "../state/tape.ts";
import { usePage } from "./context.ts";
import { leadToMessage } from "./lead.ts";
import { allWords, requestWords } from "./request-words.ts";
import { fillOf, Legend, type LegendSign, lostPath, Patterns, partsOf } from "./tape-parts.tsx";
import { shortCount } from "./widgets/figures.tsx";

// Lengths in CSS pixels.
const lowHeight = 32;
const tallHeight = 104;
const maxBarWidth = 28;
const minBarWidth = 4;
/** The place of the marks above the bars. */
const marksHeight = 8;

interface Place {
  readonly bar: Bar;
  readonly x: number;
  readonly width: number;
  /** The place of the pause before it. */
  readonly pause: number;
}

interface TapeProps {
  readonly open: OpenSession;
  readonly figures: Figures;
}

/** The requests of a session as bars. The table of the requests says the same. */
export function Tape({ open, figures }: TapeProps): JSX.Element {
  const { looks } = usePage();
  const { conversation } = open;
  const { requests } = figures;
  const frame = useRef<HTMLDivElement>(null);
  const width = useSignal(0);
  const sentence = useId();
  const all = requests.all.value;
  const tab = looks.tab.value;
  const isTall = tab !== "conversation";
  const isShown = all.length > 0 && (isTall || !looks.foldsTape.value);
  useEffect(() => {
    const { current } = frame;
    if (current === null) return;
    const size = new ResizeObserver(() => {
      width.value = current.clientWidth;
    });
    size.observe(current);
    return () => size.disconnect();
  }, [isShown]);
  if (!isShown) return <Patterns />;
  const bars = barsOf(all, Math.max(1, Math.floor(width.value / minBarWidth)));
  const places = placesOf(bars, width.value, isTall);
  const height = isTall ? tallHeight : lowHeight;
  const { value: chosen } = requests.chosen;
  const at = chosen === undefined ? -1 : bars.findIndex((bar) => bar.requests.some(({ id }) => id === chosen.id));
  const choose = (index: number): void => requests.choose(bars[index]?.requests.at(-1)?.id);
  const lead = (): void => {
    const { value: request } = requests.chosen;
    if (request !== undefined) void leadToMessage(looks, conversation, request);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const from = at < 0 ? bars.length : at;
    const next = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: bars.length - 1 }[event.key];
    if (next !== undefined) choose(Math.min(Math.max(next, 0), bars.length - 1));
    else if (event.key === "Enter" && !event.repeat) lead();
    else return;
    event.preventDefault();
  };
  const onClick = ({ clientX, currentTarget }: MouseEvent): void => {
    const x = clientX - (currentTarget as Element).getBoundingClientRect().left;
    choose(nearest(places, x));
    if (!isTall) lead();
    else looks.tab.value = "requests";
  };
  const shown = bars[at] ?? bars.at(-1);
  return (
    <div class="tape" data-tall={isTall}>
      <Patterns />
      <div
        ref={frame}
        class="tape-bars"
        role="slider"
        tabIndex={0}
        aria-label="Requests"
        aria-describedby={sentence}
        aria-orientation="horizontal"
        aria-valuemin={1}
        aria-valuemax={bars.length}
        aria-valuenow={at < 0 ? bars.length : at + 1}
        aria-valuetext={shown === undefined ? "" : barWords(shown)}
        onKeyDown={onKeyDown}
        onClick={onClick}
      >
        <svg width="100%" height={height} aria-hidden="true">
          <Bars places={places} height={height} chosen={at} isTall={isTall} />
        </svg>
      </div>
      <p id={sentence} class={isTall ? "tape-words" : "unseen"}>
        {allWords(all, requests.isWhole.value)}
        {bars.length < all.length && " Ten share a bar, as high as their mean."}
      </p>
      <Legend signs={signsOf(bars)} />
    </div>
  );
}

interface BarsProps {
  readonly places: readonly Place[];
  readonly height: number;
  readonly chosen: number;
  readonly isTall: boolean;
}

function Bars({ places, height, chosen, isTall }: BarsProps): JSX.Element {
  const most = Math.max(1, ...places.map(({ bar }) => heightOf(bar.tokens)));
  const room = height - marksHeight - 2;
  return (
    <>
      <path d={`M0 ${height - 0.5}H${(places.at(-1)?.x ?? 0) + (places.at(-1)?.width ?? 0)}`} class="line-axis" />
      {places.map((place, index) => (
        <g key={place.bar.requests[0].id}>
          <OneBar place={place} height={height} room={room} most={most} />
          {place.pause > 0 && <Pause place={place} height={height} hasWords={isTall} />}
          {index === chosen && (
            <rect
              x={place.x - 1.5}
              y="1"
              width={Math.max(3, place.width + 3)}
              height={height - 2}
              rx="3"
              class="line-chosen"
            />
          )}
        </g>
      ))}
    </>
  );
}

interface OneBarProps {
  readonly place: Place;
  readonly height: number;
  readonly room: number;
  readonly most: number;
}

function OneBar({ place: { bar, x, width }, height, room, most }: OneBarProps): JSX.Element {
  const { tokens, isFailed, isUnderWay, hasLostCache, carriesPush } = bar;
  const unknownHeight = room * 0.4;
  const bottom = height - 1;
  const middle = x + width / 2;
  const aside = hasLostCache && carriesPush ? Math.min(5, width / 4) : 0;
  return (
    <>
      <title>{barWords(bar)}</title>
      {tokens !== undefined &&
        partsOf(tokens, room, most).map(({ kind, from, length }) => (
          <rect key={kind} x={x} y={bottom - from - length} width={width} height={length} {...fillOf(kind)} />
        ))}
      {tokens === undefined && isUnderWay && (
        <rect
          x={x + 0.5}
          y={bottom - unknownHeight}
          width={Math.max(1, width - 1)}
          height={unknownHeight}
          class="line-under-way"
        />
      )}
      {isFailed && (
        <rect
          x={x + 0.5}
          y={bottom - unknownHeight}
          width={Math.max(1, width - 1)}
          height={unknownHeight}
          class="line-failed"
          fill="url(#fill-failed)"
        />
      )}
      {hasLostCache && <path d={lostPath(middle - aside, 1)} class="fill-failed" />}
      {carriesPush && <circle cx={middle + aside} cy="4" r="3" class="fill-accent" />}
    </>
  );
}

interface PauseProps {
  readonly place: Place;
  readonly height: number;
  readonly hasWords: boolean;
}

function Pause({ place: { bar, x, pause }, height, hasWords }: PauseProps): JSX.Element {
  const from = x - pause;
  return (
    <>
      <path d={`M${from} ${height - 4.5}H${x - 2}`} class="line-pause" />
      {hasWords && pause >= 40 && bar.pauseMs !== undefined && (
        <text x={from + pause / 2 - 1} y={height - 9} text-anchor="middle" class="tape-pause">
          {pauseWords(bar.pauseMs)}
        </text>
      )}
    </>
  );
}

/** `75 s`, `12 min`, `3 h`, `2 d`. */
function pauseWords(ms: number): string {
  const minutes = ms / 60_000;
  if (minutes < 2) return `${Math.round(ms / 1_000)} s`;
  if (minutes < 90) return `${Math.round(minutes)} min`;
  return minutes < 48 * 60 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1_440)} d`;
}

function placesOf(bars: readonly Bar[], width: number, isTall: boolean): readonly Place[] {
  const pauses = bars.filter(({ pauseMs }, index) => index > 0 && pauseMs !== undefined).length;
  const wanted = isTall ? 46 : 18;
  // Pauses get at most a quarter of the width.
  const pause = pauses === 0 ? 0 : Math.min(wanted, (width * 0.25) / pauses);
  const step = Math.min(maxBarWidth, (width - pauses * pause) / Math.max(1, bars.length));
  const gap = step >= 6 ? 2 : 1;
  let x = 0;
  return bars.map((bar, index) => {
    const before = index > 0 && bar.pauseMs !== undefined ? pause : 0;
    const place = { bar, x: x + before, width: Math.max(0.5, step - gap), pause: before };
    x += before + step;
    return place;
  });
}

function nearest(places: readonly Place[], x: number): number {
  const distance = ({ x: from, width }: Place): number => Math.abs(from + width / 2 - x);
  return places.reduce((best, place, index) => {
    const known = places[best];
    return known === undefined || distance(place) < distance(known) ? index : best;
  }, 0);
}

function barWords({ requests, tokens }: Bar): string {
  const [first, last] = [requests[0], requests.at(-1)];
  if (last === undefined || requests.length === 1) return requestWords(first);
  const mean = tokens === undefined ? "tokens not known" : `${shortCount(heightOf(tokens))} tokens each on average`;
  return `Requests ${first.number} to ${last.number}, ${mean}`;
}

/** What the bars have. */
function signsOf(bars: readonly Bar[]): readonly LegendSign[] {
  const some = (holds: (bar: Bar) => boolean, sign: LegendSign): readonly LegendSign[] =>
    bars.some(holds) ? [sign] : [];
  return [
    ...tokenKinds.filter((kind) => bars.some(({ tokens }) => (tokens?.[kind] ?? 0) > 0)),
    ...some(({ isFailed }) => isFailed, "failed"),
    ...some(({ hasLostCache }) => hasLostCache, "lost"),
    ...some(({ carriesPush }) => carriesPush, "push"),
    ...some(({ pauseMs }) => pauseMs !== undefined, "pause"),
  ];
}
