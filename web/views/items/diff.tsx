import type { JSX } from "preact";

/** Further lines are shown without colours. */
const maxLines = 1_500;

/** A diff as pi writes it: each line begins with its sign. */
export function Diff({ text }: { readonly text: string }): JSX.Element {
  const lines = text.split("\n");
  const rest = lines.slice(maxLines).join("\n");
  return (
    <pre class="output diff" tabIndex={0}>
      {lines.slice(0, maxLines).map((line, index) => (
        <span key={index} class={kinds[line[0] ?? ""] ?? ""}>
          {`${line}\n`}
        </span>
      ))}
      {rest}
    </pre>
  );
}

const kinds: Readonly<Record<string, string>> = { "+": "added", "-": "removed" };
