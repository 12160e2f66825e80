import { useSignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { lostAt, mostLost } from "../state/context-facts.ts";
import type { Figures } from "../state/figures.ts";
import type { OpenSession } from "../state/open-session.ts";
import type { Outcome } from "../state/outcome.ts";
import type { Compaction, ContextAction, ContextChange, SessionContext } from "../state/session-context.ts";
import { visibleText } from "../text/hidden-characters.ts";
import { useOffer } from "./context.ts";
import { shortCount, wholeCount } from "./widgets/figures.tsx";
import { Sheet } from "./widgets/sheet.tsx";

interface ContextActionsProps {
  readonly open: OpenSession;
  readonly figures: Figures;
}

/** What people can do about the context of a session, in the list of all actions and, once chosen, over the page. */
export function ContextActions({ open, figures: { context, requests } }: ContextActionsProps): JSX.Element | null {
  const { value: action } = context.prepared;
  const { value: inspected } = context.inspected;
  const { value: pruned } = context.pruned;
  const show = (next: ContextAction | undefined) => () => {
    context.prepared.value = next;
  };
  useOffer({
    about: "its context",
    entries: [
      { label: "Compact…", choose: show({ kind: "compact" }) },
      ...(pruned.kind === "known"
        ? [
            { label: "Compress…", choose: show({ kind: "compress" }) },
            { label: "Take outputs out…", choose: show({ kind: "sweep" }) },
          ]
        : []),
    ],
  });
  useEffect(() => show(undefined), [context]);
  if (action === undefined) return null;
  const usage = requests.all.value.findLast(({ usage }) => usage !== undefined)?.usage;
  const most = mostLost(usage, inspected.kind === "known" ? inspected.value.window : undefined);
  return (
    <ContextSheet
      action={action}
      context={context}
      lost={
        most === undefined || pruned.kind !== "known" || !("block" in action)
          ? most
          : lostAt(action.block, pruned.value, most)
      }
      isAsleep={open.choices.isAsleep.value}
      isRunning={open.info.value?.state === "running"}
      onClose={show(undefined)}
    />
  );
}

interface ContextSheetProps {
  readonly action: ContextAction;
  readonly context: SessionContext;
  /** The most that the provider's cache can lose. Undefined: not known. */
  readonly lost: number | undefined;
  readonly isAsleep: boolean;
  readonly isRunning: boolean;
  onClose(): void;
}

/** Says what an action does and what it costs, before it is done, and afterwards its outcome. */
function ContextSheet({ action, context, lost, isAsleep, isRunning, onClose }: ContextSheetProps): JSX.Element {
  // What is known may not have been read yet.
  useEffect(() => context.look(), [context]);
  const outcome = useSignal<Outcome<ContextChange | Compaction> | undefined>(undefined);
  const isBusy = useSignal(false);
  const focus = useSignal("");
  const last = useSignal("");
  const { title, verb, about } = wordsOf(action);
  const count = /^\d+$/.test(last.value) ? Number(last.value) : undefined;
  const done = (): Promise<Outcome<ContextChange | Compaction>> => {
    if (action.kind === "compact") return context.compact(focus.value);
    if (action.kind === "compress") return context.compress(focus.value, isRunning);
    if (action.kind === "sweep") return context.sweep(count, isRunning);
    return action.kind === "open" ? context.open(action.block.id) : context.close(action.block.id);
  };
  const act = async (): Promise<void> => {
    if (isBusy.value) return;
    isBusy.value = true;
    outcome.value = await done();
    isBusy.value = false;
  };
  const result = outcome.value;
  return (
    <Sheet title={title} onClose={onClose}>
      {(close) =>
        result?.kind === "done" ? (
          <Changed change={result.value} close={close} />
        ) : (
          <form
            class="form"
            onSubmit={(event) => {
              event.preventDefault();
              void act();
            }}
          >
            <p>{about}</p>
            {(action.kind === "compress" || action.kind === "compact") && (
              <label>
                <span>{action.kind === "compress" ? "What to compress" : "What the summary must keep"}</span>
                <input
                  class="field"
                  value={focus.value}
                  maxLength={2_000}
                  placeholder="The model decides"
                  onInput={({ currentTarget }) => {
                    focus.value = currentTarget.value;
                  }}
                />
              </label>
            )}
            {action.kind === "sweep" && (
              <label>
                <span>The outputs of the newest tool calls instead</span>
                <input
                  class="field"
                  value={last.value}
                  inputMode="numeric"
                  pattern="[1-9][0-9]{0,2}|1000"
                  placeholder="How many"
                  onInput={({ currentTarget }) => {
                    last.value = currentTarget.value;
                  }}
                />
              </label>
            )}
            <ul class="bullets">
              <li>{lossWords(lost)}</li>
              {isAsleep && <li>The session sleeps: this starts its pi.</li>}
              {isRunning && (
                <li>
                  A run is in progress:{" "}
                  {action.kind === "compact"
                    ? "the daemon refuses this until it has ended."
                    : "the change is made between two of its answers."}
                </li>
              )}
            </ul>
            <p class="is-bad" role="alert">
              {result?.kind === "refused" && result.words}
            </p>
            <div class="row-of-buttons">
              <button type="button" class="button" onClick={close}>
                Leave it
              </button>
              <button type="submit" class="button primary" aria-disabled={isBusy.value}>
                {isBusy.value ? "…" : verb}
              </button>
            </div>
          </form>
        )
      }
    </Sheet>
  );
}

function wordsOf(action: ContextAction): { readonly title: string; readonly verb: string; readonly about: string } {
  switch (action.kind) {
    case "compact":
      return {
        title: "Compact the conversation?",
        verb: "Compact it",
        about:
          "pi asks the model for one summary, which replaces the older part of the conversation. It costs a request. The messages stay in the session's file, but only a branch from before can have them in its context again.",
      };
    case "compress":
      return {
        title: "Compress the conversation?",
        verb: "Ask the model",
        about:
          "The model is asked to replace parts of the conversation by summaries. It costs a request. The messages stay in the session's file, and each block can be opened again.",
      };
    case "sweep":
      return {
        title: "Take outputs out of the context?",
        verb: "Take them out",
        about:
          "Repeated outputs and inputs of failed calls leave the context, as the session's strategies say. They stay in the session's file, and the model can recall outputs.",
      };
    case "open": {
      const { topic, tokensBefore, tokensAfter } = action.block;
      return {
        title: `Open “${visibleText(topic)}”?`,
        verb: "Open it",
        about: `The messages come back in place of their summary: about ${shortCount(Math.max(0, tokensBefore - tokensAfter))} tokens more in each request.`,
      };
    }
    case "close": {
      const { topic, tokensBefore, tokensAfter } = action.block;
      return {
        title: `Compress “${visibleText(topic)}” again?`,
        verb: "Compress it",
        about: `Its summary replaces the messages again: about ${shortCount(Math.max(0, tokensBefore - tokensAfter))} tokens less in each request.`,
      };
    }
  }
}

function lossWords(lost: number | undefined): string {
  if (lost === undefined) return "What the provider's cache loses is not known: no request has reported its use.";
  if (lost === 0) return "No loss of the provider's cache is expected: it reported none of the messages in it.";
  return `The provider's cache loses at most ${wholeCount(lost)} tokens: the next request reads what follows the first change again, at the full price.`;
}

interface ChangedProps {
  readonly change: ContextChange | Compaction;
  close(): void;
}

/** The outcome of an action. It replaces the form, and takes its focus. */
function Changed({ change, close }: ChangedProps): JSX.Element {
  const button = useRef<HTMLButtonElement>(null);
  useLayoutEffect(() => button.current?.focus(), []);
  return (
    <>
      <div role="status">
        <p>{changeWords(change)}</p>
        {(isCompaction(change) ? [] : change.notes).map((note, index) => (
          <p key={index} class="quiet">
            {note}
          </p>
        ))}
      </div>
      <div class="row-of-buttons">
        <button ref={button} type="button" class="button" onClick={close}>
          Close
        </button>
      </div>
    </>
  );
}

function isCompaction(change: ContextChange | Compaction): change is Compaction {
  return "firstKeptEntryId" in change;
}

function changeWords(change: ContextChange | Compaction): string {
  if (isCompaction(change)) {
    const { tokensBefore, estimatedTokensAfter: after } = change;
    const left = after === undefined ? "" : `, and about ${wholeCount(after)} now`;
    return `Done. The context had ${wholeCount(tokensBefore)} tokens${left}.`;
  }
  const { state, tokens, pruned } = change;
  if (state === "asked") return "The model was asked. The conversation shows what it does.";
  if (state === "waiting") return "It will be done between two answers of the run.";
  if (tokens === 0 && pruned.length === 0) return "Nothing has changed: there was nothing to take out.";
  const left = pruned.length === 0 ? "" : ` ${pruned.length} outputs or inputs left the context.`;
  return `Done.${left} The next request has about ${wholeCount(Math.abs(tokens))} tokens ${tokens < 0 ? "more" : "less"}.`;
}
