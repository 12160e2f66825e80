import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { Waiting } from "../state/composer.ts";
import { WhoWords } from "./items/who.tsx";
import { Icon, type IconName } from "./widgets/icon.tsx";

const signs: Readonly<Record<Waiting["how"], readonly [icon: IconName, words: string]>> = {
  steer: ["into", "enters this run"],
  followUp: ["wait", "after this run"],
  nextTurn: ["wait", "with the next message"],
};

/** What waits to enter the conversation, in order, each with its way back. */
export function Waits({ waiting }: { readonly waiting: readonly Waiting[] }): JSX.Element | null {
  const problem = useSignal("");
  if (waiting.length === 0 && problem.value === "") return null;
  const takeBack = async (item: Waiting): Promise<void> => {
    const outcome = await item.takeBack?.();
    problem.value = outcome?.kind === "refused" ? outcome.words : "";
  };
  return (
    <section class="waits" aria-label="Waits">
      <ol>
        {waiting.map((item) => (
          <li key={item.id}>
            <Icon name={signs[item.how][0]} />
            <span class="cut">
              <bdi>{item.words}</bdi>
            </span>
            <span class="quiet">
              {item.kind === "push" ? "push" : <WhoWords who={item.who} />}, {signs[item.how][1]}
            </span>
            {item.takeBack === undefined ? (
              <span />
            ) : (
              <button type="button" class="button small" onClick={() => void takeBack(item)}>
                {item.kind === "push" ? "Cancel" : "Take back"}
              </button>
            )}
          </li>
        ))}
      </ol>
      <p class="said is-bad" role="status">
        {problem.value}
      </p>
    </section>
  );
}
