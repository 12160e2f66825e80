import { type Signal, useSignal } from "@preact/signals";
import type { JSX } from "preact";
import type { App } from "../state/app.ts";
import type { ForkPlace } from "../state/branching.ts";
import type { UserItem } from "../state/items.ts";
import type { OpenSession } from "../state/open-session.ts";
import { usePage, useWorkspace } from "./context.ts";
import { goToComposer, openSession } from "./moves.ts";
import type { Looks } from "./place.ts";
import { Words } from "./widgets/words.tsx";

/** How making a branch goes. */
export type BranchingState =
  | { readonly kind: "none" }
  | { readonly kind: "working"; readonly words: string }
  /** `place`: the fork may be possible without the run. */
  | { readonly kind: "refused"; readonly words: string; readonly place?: ForkPlace };

interface ForkOptions {
  readonly app: App;
  readonly looks: Looks;
  readonly open: OpenSession;
  readonly place: ForkPlace;
  readonly state: Signal<BranchingState>;
  readonly abortRun?: boolean;
}

/** Forks the session and opens the new one, with the text of the message in its field. */
async function fork({ app, looks, open, place, state, abortRun = false }: ForkOptions): Promise<void> {
  const branching = open.figures.value?.branching;
  if (branching === undefined || state.value.kind === "working") return;
  state.value = { kind: "working", words: "Forking…" };
  const outcome = await branching.fork(place, abortRun);
  if (outcome.kind === "refused") {
    const { words, isBusy } = outcome;
    state.value = { kind: "refused", words, ...(isBusy && { place }) };
    return;
  }
  state.value = { kind: "none" };
  const { sessionId, text } = outcome.value;
  // A person who has opened something else stays there.
  if (app.workspace.value?.selected.value !== open) return;
  looks.tab.value = "conversation";
  openSession(app, looks, sessionId);
  if (text !== undefined) {
    app.workspace.value.selected.value?.composer.draft.write(text);
    // Until then the field of the former session has its place.
    for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
    goToComposer(looks);
  }
}

/** Makes branches of a session by a press. */
export function useBranching(open: OpenSession): {
  readonly state: Signal<BranchingState>;
  fork(place: ForkPlace, abortRun?: boolean): void;
  goOn(entryId: string): void;
} {
  const { app, looks } = usePage();
  const state = useSignal<BranchingState>({ kind: "none" });
  const goOn = async (entryId: string): Promise<void> => {
    const branching = open.figures.value?.branching;
    if (branching === undefined || state.value.kind === "working") return;
    state.value = { kind: "working", words: "Going back…" };
    const outcome = await branching.goOn(entryId);
    if (outcome.kind === "refused") {
      state.value = outcome;
      return;
    }
    state.value = { kind: "none" };
    const { draft } = open.composer;
    const former = draft.text.value;
    if (outcome.value !== undefined) draft.write(former === "" ? outcome.value : `${outcome.value}\n\n${former}`);
    if (app.workspace.value?.selected.value === open) goToComposer(looks);
  };
  return {
    state,
    fork: (place, abortRun) => void fork({ app, looks, open, place, state, ...(abortRun === true && { abortRun }) }),
    goOn: (entryId) => void goOn(entryId),
  };
}

interface BranchingWordsProps {
  readonly state: BranchingState;
  fork(place: ForkPlace, abortRun: boolean): void;
}

/** The outcome, and a way to do what was refused. */
export function BranchingWords({ state, fork }: BranchingWordsProps): JSX.Element {
  const place = state.kind === "refused" ? state.place : undefined;
  return (
    <p class={state.kind === "refused" ? "said is-bad" : "said"} role="status">
      {state.kind !== "none" && <Words text={state.words} />}
      {place !== undefined && (
        <>
          {" "}
          <button type="button" class="link" onClick={() => fork(place, true)}>
            Stop the run, then fork
          </button>
        </>
      )}
    </p>
  );
}

/** Forks a conversation before a user's message. */
export function ForkButton({ item }: { readonly item: UserItem }): JSX.Element | null {
  const open = useWorkspace().selected.value;
  return open === undefined || open.composer.permission.value.kind === "no" ? null : <Fork open={open} item={item} />;
}

function Fork({ open, item: { entryId, at } }: { readonly open: OpenSession; readonly item: UserItem }): JSX.Element {
  const { state, fork } = useBranching(open);
  const place: ForkPlace = entryId === undefined ? { kind: "message", at } : { kind: "entry", entryId };
  return (
    <>
      {state.value.kind !== "none" && <BranchingWords state={state.value} fork={fork} />}
      <button
        type="button"
        class="button bare small copy fork"
        title="Makes a new session of what is before this message, which you can then change"
        onClick={() => fork(place)}
      >
        Fork
      </button>
    </>
  );
}
