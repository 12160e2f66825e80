import type { JSX } from "preact";

/** A sentence of ours, with commands in backticks. */
export function Words({ text }: { readonly text: string }): JSX.Element {
  return <>{text.split("`").map((part, index) => (index % 2 === 0 ? part : <code key={index}>{part}</code>))}</>;
}
