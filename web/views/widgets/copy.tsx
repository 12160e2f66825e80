import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "./icon.tsx";

interface CopyProps {
  /** What is copied, for the button's name. */
  readonly what: string;
  text(): string;
}

/** Copies a text, and says whether it could. */
export function Copy({ what, text }: CopyProps): JSX.Element {
  const [said, setSaid] = useState<string>();
  const copy = async (): Promise<void> => {
    const words = await navigator.clipboard.writeText(text()).then(
      () => "Copied",
      () => "Not copied",
    );
    setSaid(words);
  };
  return (
    <button
      type="button"
      class="button bare small copy"
      aria-label={said === undefined ? `Copy ${what}` : undefined}
      title={`Copy ${what}`}
      onClick={() => void copy()}
      onBlur={() => setSaid(undefined)}
    >
      <Icon name={said === "Copied" ? "check" : "copy"} />
      {said}
    </button>
  );
}
