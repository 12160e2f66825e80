import { useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Unsearched } from "../../protocol/transcript-methods.ts";
import type { HitKind } from "../state/finding.ts";
import { type Hit, type Scope, type Search, TranscriptSearch } from "../state/search.ts";
import { Visible } from "../text/visible.tsx";
import { usePage, useWorkspace } from "./context.ts";
import { clearMarks, findRow, otherBranch, showFound } from "./lead-to-hit.ts";
import { openSession } from "./moves.ts";
import { Icon } from "./widgets/icon.tsx";
import { Sheet } from "./widgets/sheet.tsx";
import { Age } from "./widgets/time.tsx";

const kindWords: Readonly<Record<HitKind, string>> = {
  user: "Message",
  assistant: "Answer",
  thinking: "Thought",
  toolCall: "Tool call",
  toolResult: "Tool output",
  bash: "Command",
  custom: "Push",
  summary: "Summary",
  name: "Name",
};

const scopes: readonly (readonly [scope: Scope, words: string])[] = [
  ["session", "This session"],
  ["all", "All sessions"],
];

/** Finds words in the open conversation or in all, and leads to them. */
export function SearchSheet(): JSX.Element {
  const { app, looks } = usePage();
  const { selected } = useWorkspace();
  const search = useWorkspace().part(TranscriptSearch);
  const field = useRef<HTMLInputElement>(null);
  const list = useRef<HTMLDivElement>(null);
  /** What it says about the hit that was chosen. */
  const said = useSignal("");
  const isShown = useRef(true);
  useEffect(() => {
    clearMarks();
    search.show(selected.peek());
    field.current?.focus();
    field.current?.select();
    return () => {
      isShown.current = false;
      search.stop();
    };
  }, []);

  const choose = async (hit: Hit, close: () => void): Promise<void> => {
    const query = search.query.value;
    said.value = "Reading the conversation up to there…";
    if (selected.peek()?.sessionId !== hit.sessionId) app.workspace.peek()?.select(hit.sessionId);
    const open = selected.peek();
    if (open === undefined) return;
    const conversation = hit.isOnOtherBranch ? await otherBranch(open, hit) : open.conversation;
    const place =
      typeof conversation === "string" ? conversation : await findRow(conversation, hit, query, () => isShown.current);
    if (!isShown.current) return;
    if (typeof place === "string") {
      said.value = place;
      return;
    }
    close();
    openSession(app, looks, hit.sessionId);
    const tab = hit.isOnOtherBranch ? "tree" : "conversation";
    looks.tab.value = tab;
    await showFound(place, query, tab);
  };

  return (
    <Sheet
      title="Search"
      kind="search"
      onClose={() => {
        looks.sheet.value = undefined;
      }}
    >
      {(close) => (
        <>
          <div class="search-head">
            <input
              ref={field}
              class="field"
              type="search"
              enterkeyhint="search"
              placeholder="Words in messages, answers, tools"
              aria-label="Words to search for"
              maxLength={256}
              value={search.query.value}
              onInput={({ currentTarget }) => {
                said.value = "";
                search.write(currentTarget.value);
              }}
              onKeyDown={(event) => {
                if (event.isComposing) return;
                // A browser would only empty the field.
                if (event.key === "Escape") close();
                else if (event.key === "ArrowDown" || event.key === "Enter") hitsIn(list.current)[0]?.focus();
                else return;
                event.preventDefault();
              }}
            />
            <button type="button" class="button bare square" aria-label="Close the search" onClick={close}>
              <Icon name="cross" />
            </button>
          </div>
          <fieldset class="filters search-scopes">
            <legend class="unseen">Where it searches</legend>
            {scopes.map(([scope, words]) => (
              <label key={scope}>
                <input
                  type="radio"
                  name="scope"
                  checked={search.scope.value === scope}
                  disabled={scope === "session" && search.open.value === undefined}
                  onChange={() => search.setScope(scope)}
                />
                {words}
              </label>
            ))}
          </fieldset>
          <div ref={list} class="search-hits">
            <Hits
              search={search}
              choose={(hit) => void choose(hit, close)}
              onKeyDown={(event) => {
                const letter = looks.letterKeys.value ? event.key : "";
                const by =
                  event.key === "ArrowDown" || letter === "j" ? 1 : event.key === "ArrowUp" || letter === "k" ? -1 : 0;
                if (by === 0) return;
                event.preventDefault();
                const all = hitsIn(list.current);
                const next = all.indexOf(event.currentTarget as HTMLElement) + by;
                (next === -1 ? field.current : all[next])?.focus();
              }}
            />
            <Rest search={search} />
          </div>
          <p class="search-state quiet" role="status">
            {said.value === "" ? <StateWords search={search} /> : said.value}
          </p>
        </>
      )}
    </Sheet>
  );
}

interface HitsProps {
  readonly search: Search;
  choose(hit: Hit): void;
  onKeyDown(event: KeyboardEvent): void;
}

function Hits({ search, choose, onKeyDown }: HitsProps): JSX.Element {
  const hits = search.hits.value;
  const isOfAll = search.scope.value === "all";
  return (
    <ul>
      {hits.map((hit, index) => (
        <li key={hit.key}>
          {isOfAll && hits[index - 1]?.sessionId !== hit.sessionId && (
            <h3 class="cut">
              <bdi>{search.titleOf(hit.sessionId)}</bdi>
            </h3>
          )}
          <button type="button" class="search-hit" onClick={() => choose(hit)} onKeyDown={onKeyDown}>
            <span class="search-about quiet">
              <span>{kindWords[hit.kind]}</span>
              {hit.isOnOtherBranch && <span>on another branch</span>}
              {hit.at !== undefined && <Age at={hit.at} />}
            </span>
            <span class="search-excerpt">
              <Visible text={hit.before} />
              <mark>
                <Visible text={hit.match} />
              </mark>
              <Visible text={hit.after} />
            </span>
          </button>
        </li>
      ))}
    </ul>
  );
}

const whyWords: Readonly<Record<Unsearched["why"], string>> = {
  ephemeral: "keeps no file",
  file_older_form: "has a file of an older format, which only pi reads",
  file_unusable: "has a file that cannot be read",
  file_rewritten: "was rewritten meanwhile: search again",
  entry_too_large: "has an entry that is too large",
};

/** What was left out, and the way on. */
function Rest({ search }: { readonly search: Search }): JSX.Element {
  const state = search.state.value;
  const left = search.unsearched.value;
  const words = [...new Set(left.map(({ sessionId, why }) => `${search.titleOf(sessionId)} ${whyWords[why]}`))];
  return (
    <>
      {(state.kind === "cut" || state.kind === "refused") && (
        <p class="search-more">
          <button type="button" class="button" onClick={() => void search.more()}>
            {state.kind === "cut" ? "Go on" : "Try again"}
          </button>
        </p>
      )}
      {words.length > 0 && (
        <details class="search-left quiet">
          <summary>Not everything was searched</summary>
          <ul>
            {words.map((line) => (
              <li key={line}>
                <bdi>{line}</bdi>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

function StateWords({ search }: { readonly search: Search }): ComponentChildren {
  const { app } = usePage();
  const state = search.state.value;
  const count = search.hits.value.length;
  const { sessions, done } = search.progress.value;
  const found = count === 0 ? "Nothing found" : `${count} found`;
  const place =
    search.scope.value === "session" ? "at the end of this session" : `in the newest ${done} of ${sessions} sessions`;
  switch (state.kind) {
    case "empty":
      return <>Finds words in any case. Enter or the arrow keys lead to what was found. It starts no pi.</>;
    case "looking":
      return app.connection.value.kind === "connected" ? (
        count === 0 ? (
          "Searching…"
        ) : (
          `${found}, searching…`
        )
      ) : (
        <span class="is-warn">The connection is lost. The search goes on when it is back.</span>
      );
    case "ended":
      return <>{found}.</>;
    case "cut":
      return (
        <>
          {found} {place}.
        </>
      );
    case "full":
      return <>{found}. The page keeps no more: search for more words.</>;
    case "refused":
      return <span class="is-bad">{state.words}</span>;
  }
}

function hitsIn(list: HTMLElement | null): readonly HTMLElement[] {
  return Array.from(list?.querySelectorAll<HTMLElement>(".search-hit") ?? []);
}
