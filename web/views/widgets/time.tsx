import { type ReadonlySignal, signal } from "@preact/signals";
import type { JSX } from "preact";

const minute = 60_000;

const ticks = signal(Date.now());
setInterval(() => {
  ticks.value = Date.now();
}, minute / 2);

/** The present time, in steps of half a minute. */
const now: ReadonlySignal<number> = ticks;

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium", hourCycle: "h23" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "medium" });
const day = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric" });

/** The time of day, after the date if it was not today. */
export function Time({ at }: { readonly at: number | undefined }): JSX.Element | null {
  if (at === undefined) return null;
  const date = new Date(at);
  const isToday = date.toDateString() === new Date(now.value).toDateString();
  return (
    <time dateTime={date.toISOString()} title={full.format(date)}>
      {isToday ? clock.format(date) : `${day.format(date)}, ${clock.format(date)}`}
    </time>
  );
}

/** The time of day with its milliseconds. */
export function ExactTime({ at }: { readonly at: number }): JSX.Element {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={full.format(date)}>
      {clock.format(date)}.{String(date.getMilliseconds()).padStart(3, "0")}
    </time>
  );
}

/** How long ago something was. */
export function Age({ at }: { readonly at: number }): JSX.Element {
  const date = new Date(at);
  return (
    <time dateTime={date.toISOString()} title={full.format(date)}>
      {ageWords(now.value - at)}
    </time>
  );
}

function ageWords(ms: number): string {
  const minutes = Math.floor(ms / minute);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h`;
  return `${Math.floor(minutes / (24 * 60))} d`;
}

/** A duration in words: `0.4 s`, `12 s`, `3 min 5 s`. */
export function durationWords(ms: number): string {
  const seconds = ms / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}
