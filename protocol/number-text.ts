// Numbers as people and models read them, the same in every part.

/** An amount of US dollars. */
export function usd(amount: number): string {
  return `$${amount.toFixed(Math.abs(amount) < 1 ? 4 : 2)}`;
}

/** A whole number with commas, independent of the machine's language. */
export function count(value: number): string {
  return Math.round(value).toLocaleString("en-US");
}

/** A share, 1 for all of it, as a percentage with at most `digits` decimals. */
export function percent(share: number, digits = 0): string {
  return `${Math.round(share * 10 ** (digits + 2)) / 10 ** digits} %`;
}
