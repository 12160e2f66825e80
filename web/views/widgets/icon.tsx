import type { JSX } from "preact";

const paths = {
  question:
    "M8 14.3A6.3 6.3 0 1 0 8 1.7a6.3 6.3 0 0 0 0 12.6ZM6.2 6.3a1.8 1.8 0 1 1 2.6 1.6c-.6.3-.8.6-.8 1.2M8 11.3v.1",
  failed: "M8 2 1.8 13.2h12.4L8 2ZM8 6.4v3.2M8 11.5v.1",
  running: "M8 13A5 5 0 1 0 8 3a5 5 0 0 0 0 10ZM8 9.3a1.3 1.3 0 1 0 0-2.6 1.3 1.3 0 0 0 0 2.6Z",
  finished: "M8 14.3A6.3 6.3 0 1 0 8 1.7a6.3 6.3 0 0 0 0 12.6ZM5.2 8.2l2 2 3.6-4.2",
  awake: "M8 13A5 5 0 1 0 8 3a5 5 0 0 0 0 10Z",
  asleep: "M13.4 9.8A5.8 5.8 0 0 1 6.2 2.6a5.8 5.8 0 1 0 7.2 7.2Z",
  check: "m3 8.4 3.3 3.3L13 5",
  cross: "m4 4 8 8M12 4l-8 8",
  chevron: "m6 3.5 4.5 4.5L6 12.5",
  back: "M10 3.5 5.5 8l4.5 4.5",
  more: "M3.2 8h.1M8 8h.1M12.7 8h.1",
  copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1",
  image: "M2 3h12v10H2zM2 11l3.5-3.5L9 11l2-2 3 3M10.6 6.2v.1",
  down: "M8 3v9.5M4 8.7l4 4 4-4",
  stop: "M4.5 4.5h7v7h-7z",
  wait: "M8 14.3A6.3 6.3 0 1 0 8 1.7a6.3 6.3 0 0 0 0 12.6ZM8 4.7V8l2.3 1.6",
  into: "M2.5 8h9M8 4l4 4-4 4",
  push: "M2.5 9.5v4h11v-4M8 2.5v7.3M4.8 6.8 8 10l3.2-3.2",
  fold: "M3 4h10M5 8h6M6.5 12h3",
  again: "M13.2 8a5.2 5.2 0 1 1-1.6-3.8M13.2 2v2.8h-2.8",
  gap: "M2 8h2.5M6.8 8h2.4M11.5 8H14",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.3 10.3 14 14",
  info: "M8 14.3A6.3 6.3 0 1 0 8 1.7a6.3 6.3 0 0 0 0 12.6ZM8 7.3v4M8 4.8v.1",
} as const;

export type IconName = keyof typeof paths;

interface IconProps {
  readonly name: IconName;
  /** A colour by class, such as `is-warn`. */
  readonly tone?: string;
}

/**
 * A sign. It is decoration: a word always stands beside it or names its button. Signs do not move, because the browser
 * would draw the page 60 times a second for as long as a run lasts.
 */
export function Icon({ name, tone = "" }: IconProps): JSX.Element {
  return (
    <svg class={`icon ${tone}`} viewBox="0 0 16 16" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}
