import type { Signal } from "@preact/signals";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Composer } from "../state/composer.ts";
import { useOffer } from "./context.ts";
import { Icon } from "./widgets/icon.tsx";

interface StopProps {
  readonly composer: Composer;
  /** Gets what stopping did to what waits, or why it was refused. */
  readonly said: Signal<string>;
  /** A sign beside the state, instead of a button with a word. */
  readonly isSign: boolean;
}

/** Ends the run. */
export function StopButton({ composer, said, isSign }: StopProps): JSX.Element {
  const [isStopping, setStopping] = useState(false);
  const stop = async (): Promise<void> => {
    setStopping(true);
    const outcome = await composer.stop();
    said.value = outcome.kind === "done" ? outcome.value : outcome.words;
    setStopping(false);
  };
  // The page has two such buttons.
  useOffer({ about: "", entries: isSign ? [{ label: "Stop the run", choose: () => void stop() }] : [] });
  return (
    <button
      type="button"
      class={isSign ? "stop-sign" : "button stop"}
      aria-label={isSign ? "Stop the run" : undefined}
      title="Stop the run"
      aria-disabled={isStopping}
      onClick={() => {
        if (!isStopping) void stop();
      }}
    >
      <Icon name="stop" />
      {!isSign && (isStopping ? "Stopping…" : "Stop")}
    </button>
  );
}
