import type { JSX } from "preact";
import { durationWords } from "./time.tsx";

const whole = new Intl.NumberFormat("en");

/** A number of tokens in short: `840`, `3.5k`, `61k`, `1.2M`. */
export function shortCount(count: number): string {
  const size = Math.abs(count);
  if (size < 1_000) return String(Math.round(count));
  if (size < 9_950) return `${(count / 1_000).toFixed(1)}k`;
  if (size < 999_500) return `${Math.round(count / 1_000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

export function wholeCount(count: number): string {
  return whole.format(count);
}

/** `< 1 %`, `11 %`. */
export function shareWords(share: number): string {
  const whole = Math.round(share * 100);
  return whole === 0 && share > 0 ? "< 1 %" : `${whole} %`;
}

/** An amount in USD: `$1.20`; below a dollar `$0.056`, with three decimals; below `$0.001` two digits that count, `$0.00042`. */
export function usdWords(usd: number): string {
  const size = Math.abs(usd);
  const sign = usd < 0 ? "−" : "";
  if (size >= 1 || size === 0) return `${sign}$${size.toFixed(2)}`;
  return `${sign}$${size >= 0.001 ? size.toFixed(3) : Number(size.toPrecision(2)).toFixed(6).replace(/0+$/, "")}`;
}

/** A duration that can be short: `40 ms`, `1.2 s`, `3 min 5 s`. */
export function msWords(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : durationWords(ms);
}

interface FigureProps {
  /** Undefined: not known. */
  readonly value: number | undefined;
  /** What is said where it is not known. */
  readonly unknown?: string;
}

/** A number of tokens. The whole number is its value and its title. */
export function Count({ value, unknown = "not known" }: FigureProps): JSX.Element {
  if (value === undefined) return <Unknown why={unknown} />;
  return (
    <data value={String(value)} title={wholeCount(value)}>
      {shortCount(value)}
    </data>
  );
}

/** An amount in USD. */
export function Usd({ value, unknown = "not known" }: FigureProps): JSX.Element {
  if (value === undefined) return <Unknown why={unknown} />;
  return (
    <data value={String(value)} title={`$${value}`}>
      {usdWords(value)}
    </data>
  );
}

/** Stands where a number is not known: a zero would be wrong. */
export function Unknown({ why }: { readonly why: string }): JSX.Element {
  return (
    <span class="quiet" title={why}>
      <span aria-hidden="true">–</span>
      <span class="unseen">{why}</span>
    </span>
  );
}
