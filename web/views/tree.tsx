import { useSignal } from "@preact/signals";
import type { JSX, RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { Figures } from "../state/figures.ts";
import type { OpenSession } from "../state/open-session.ts";
import type { ReadBranch, Tree } from "../state/session-tree.ts";
import type { EntryRow, FoldRow, TreeRow } from "../state/tree-graph.ts";
import { Visible } from "../text/visible.tsx";
import { usePage, useWorkspace } from "./context.ts";
import { Conversation } from "./conversation.tsx";
import { BranchingWords, useBranching } from "./fork.tsx";
import { leadToMessage, showMessage } from "./lead.ts";
import { openSession } from "./moves.ts";
import type { Looks } from "./place.ts";
import { hasRow, kindOfEntry, wordsOfEntry } from "./tree-words.ts";
import { Icon } from "./widgets/icon.tsx";
import { Time } from "./widgets/time.tsx";
import { Words } from "./widgets/words.tsx";

interface TreeViewProps {
  readonly open: OpenSession;
  readonly figures: Figures;
}

/** All branches of a session, newest first, as `git log --graph` shows commits. */
export function TreeView({ open, figures: { tree } }: TreeViewProps): JSX.Element {
  const state = tree.state.value;
  const branch = tree.branch.value;
  if (branch !== undefined) return <BranchView key={branch.leafId} open={open} tree={tree} branch={branch} />;
  if (state.kind === "refused") {
    return (
      <div class="tree-head">
        <p class="is-bad">
          {state.words}{" "}
          <button type="button" class="link" onClick={() => void tree.reload()}>
            Read again
          </button>
        </p>
      </div>
    );
  }
  if (tree.tree.value.size === 0) {
    return (
      <div class="empty">
        <h2>{state.kind === "loading" ? "Reading the tree…" : "No entries yet"}</h2>
        {state.kind === "ready" && (
          <p>
            Each message, compaction and change of the model will be here, and a branch wherever the session goes on
            from an earlier one. Your first message begins it.
          </p>
        )}
      </div>
    );
  }
  return (
    <div class="tree">
      <TreeHead tree={tree} />
      <TreeRows open={open} tree={tree} />
      <Chosen open={open} tree={tree} />
    </div>
  );
}

function TreeHead({ tree }: { readonly tree: Tree }): JSX.Element {
  const { app, looks } = usePage();
  const { sessions } = useWorkspace();
  const { size, leaves } = tree.tree.value;
  const parent = tree.parent.value;
  const parentId = parent?.sessionId;
  return (
    <div class="tree-head">
      <span>
        {size === 1 ? "1 entry" : `${size.toLocaleString("en")} entries`},{" "}
        {leaves === 1 ? "one branch" : `${leaves.toLocaleString("en")} branches`}
      </span>
      {parent !== undefined && (
        <span class="tree-parent">
          {parentId === undefined ? (
            "Forked from a session that is not open here"
          ) : (
            <>
              Forked from{" "}
              <button type="button" class="link" onClick={() => openSession(app, looks, parentId)}>
                <bdi>{sessions.find(parentId)?.title ?? parentId}</bdi>
              </button>
            </>
          )}
        </span>
      )}
      <label class="switch push-right">
        <input
          type="checkbox"
          checked={tree.showsUsers.value}
          onChange={() => tree.showUsers(!tree.showsUsers.value)}
        />
        Messages of users
      </label>
    </div>
  );
}

/** Rows are built while they are this near the view, in CSS pixels. */
const near = 500;
const heights = { narrow: 44, wide: 30 } as const;

interface RowsProps {
  readonly open: OpenSession;
  readonly tree: Tree;
}

function TreeRows({ open, tree }: RowsProps): JSX.Element {
  const { looks } = usePage();
  const box = useRef<HTMLDivElement>(null);
  const height = looks.isNarrow.value ? heights.narrow : heights.wide;
  const rows = tree.rows.value;
  const view = useView(box);
  const wanted = useRef<string | undefined>(undefined);
  const { places, lanes } = useMemo(
    () => ({
      places: new Map(rows.map(({ id }, index) => [id, index])),
      lanes: rows.reduce((most, { lane }) => Math.max(most, lane), 0),
    }),
    [rows],
  );
  const chosen = places.get(tree.chosen.value ?? "") ?? -1;
  const first = Math.floor((view.top - near) / height);
  const last = Math.ceil((view.top + view.height + near) / height);
  const isBuilt = (index: number): boolean =>
    (index >= first && index <= last) || (chosen >= 0 && Math.abs(index - chosen) <= 1);
  const built = [...new Set([...range(first, last), ...(chosen < 0 ? [] : range(chosen - 1, chosen + 1))])]
    .filter((index) => index >= 0 && index < rows.length && isBuilt(index))
    .sort((one, other) => one - other);

  const move = (index: number): void => {
    const row = rows[index];
    const { current: scroller } = box;
    if (row === undefined || scroller === null) return;
    wanted.current = row.id;
    tree.choose(row.id);
    const { scrollTop, clientHeight } = scroller;
    if (index * height < scrollTop) scroller.scrollTop = index * height;
    else if ((index + 1) * height > scrollTop + clientHeight) scroller.scrollTop = (index + 1) * height - clientHeight;
  };
  useLayoutEffect(() => {
    const { current: id } = wanted;
    if (id === undefined) return;
    const row = box.current?.querySelector<HTMLElement>(`[data-tree-row="${CSS.escape(id)}"]`);
    if (row == null) return;
    wanted.current = undefined;
    row.focus({ preventScroll: true });
  });
  // A run that was folded, or a message of a user, may have gone.
  const isChosenHere = chosen >= 0;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const to = {
      ArrowDown: isChosenHere ? chosen + 1 : 0,
      ArrowUp: isChosenHere ? chosen - 1 : 0,
      Home: 0,
      End: rows.length - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    move(Math.min(Math.max(to, 0), rows.length - 1));
  };
  const shownFirst = built[0] ?? 0;
  return (
    <div ref={box} class="tree-box">
      <ol
        class="tree-rows"
        aria-label="Entries, newest first"
        style={{ height: `${rows.length * height}px` }}
        onKeyDown={onKeyDown}
      >
        {built.map((index) => {
          const row = rows[index] as TreeRow;
          return (
            <li
              key={row.id}
              aria-setsize={rows.length}
              aria-posinset={index + 1}
              style={{ top: `${index * height}px`, height: `${height}px` }}
            >
              <Row
                row={row}
                height={height}
                lanes={lanes}
                isChosen={index === chosen}
                isFirst={isChosenHere ? index === chosen : index === shownFirst}
                choose={() => tree.choose(row.id)}
                lead={() => (row.kind === "fold" ? tree.toggle(row.id) : leadTo(looks, open, tree, row))}
              />
            </li>
          );
        })}
      </ol>
      {tree.hasEarlier.value &&
        (tree.state.value.kind === "loading" ? (
          <p class="tree-earlier">Reading what is before…</p>
        ) : (
          <Earlier tree={tree} />
        ))}
    </div>
  );
}

/** The part of a scrolled element that is seen. */
function useView(box: RefObject<HTMLElement | null>): { readonly top: number; readonly height: number } {
  const view = useSignal({ top: 0, height: 900 });
  useEffect(() => {
    const { current: scroller } = box;
    if (scroller === null) return;
    const look = (): void => {
      view.value = { top: scroller.scrollTop, height: scroller.clientHeight };
    };
    const observer = new ResizeObserver(look);
    observer.observe(scroller);
    scroller.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      scroller.removeEventListener("scroll", look);
    };
  }, []);
  return view.value;
}

function range(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}

function Earlier({ tree }: { readonly tree: Tree }): JSX.Element {
  const said = useSignal("");
  const readEarlier = async (): Promise<void> => {
    const outcome = await tree.readEarlier();
    said.value = outcome.kind === "refused" ? outcome.words : "";
  };
  return (
    <p class="tree-earlier">
      Earlier entries were not read: the tree is long.{" "}
      <button type="button" class="link" onClick={() => void readEarlier()}>
        Read them
      </button>{" "}
      <span class="is-bad">{said.value}</span>
    </p>
  );
}

interface RowProps {
  readonly row: TreeRow;
  readonly height: number;
  /** The largest lane of all rows. */
  readonly lanes: number;
  readonly isChosen: boolean;
  /** Whether Tab comes to it. */
  readonly isFirst: boolean;
  choose(): void;
  /** Leads to its message, or opens it. */
  lead(): void;
}

function Row({ row, height, lanes, isChosen, isFirst, choose, lead }: RowProps): JSX.Element {
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || event.repeat) return;
    event.preventDefault();
    lead();
  };
  return (
    <button
      type="button"
      class={`tree-row${row.isActive ? "" : " aside"}`}
      data-tree-row={row.id}
      tabIndex={isFirst ? 0 : -1}
      aria-current={isChosen ? "true" : undefined}
      aria-expanded={row.kind === "fold" ? row.isOpen : undefined}
      onFocus={choose}
      onClick={() => (row.kind === "fold" ? lead() : choose())}
      onDblClick={() => row.kind === "entry" && lead()}
      onKeyDown={onKeyDown}
    >
      <Graph row={row} height={height} lanes={lanes} />
      {row.kind === "fold" ? <FoldWords row={row} /> : <EntryWords row={row} />}
    </button>
  );
}

function FoldWords({ row }: { readonly row: FoldRow }): JSX.Element {
  return (
    <span class="tree-more">
      <Icon name="chevron" />
      {row.isOpen ? `${row.count} entries` : `${row.count} more`}
    </span>
  );
}

function EntryWords({ row }: { readonly row: EntryRow }): JSX.Element {
  const { entry, isHere, branches, labels, isActive, isCut } = row;
  return (
    <>
      <span class="tree-kind">
        <Visible text={kindOfEntry(entry)} />
      </span>
      <span class="tree-words">
        <Visible text={wordsOfEntry(entry)} />
      </span>
      {!isActive && <span class="unseen">on another branch</span>}
      {labels.map((label) => (
        <span key={label} class="tree-tag">
          <Visible text={label} />
        </span>
      ))}
      {branches > 1 && <span class="tree-note">{branches} branches</span>}
      {isCut && <span class="tree-note">what is before is missing</span>}
      {isHere && <span class="tree-tag here">pi is here</span>}
      <span class="tree-time">
        <Time at={entry.at} />
      </span>
    </>
  );
}

/** The width of a lane, and the most lanes that are drawn next to each other. */
const laneWidth = 14;
const maxLanes = 9;

/** The lines and the point of a row. They go on in the rows above and below. */
function Graph({ row, height, lanes }: Pick<RowProps, "row" | "height" | "lanes">): JSX.Element {
  const width = (Math.min(lanes, maxLanes) + 1) * laneWidth + 4;
  const middle = height / 2;
  const at = (lane: number): number => Math.min(lane, maxLanes) * laneWidth + 9;
  const x = at(row.lane);
  const passing = Array.from({ length: Math.min(row.lane, maxLanes) }, (_, lane) => `M${at(lane)} 0V${height}`);
  if (row.kind === "fold") {
    return (
      <svg class="tree-graph" width={width} height={height} aria-hidden="true">
        <path d={passing.join("")} />
        <path class="run" d={`M${x} 0V${height}`} />
      </svg>
    );
  }
  const { hasNext, before, entry, isHere, isActive } = row;
  const left = at(row.lane - 1);
  const own = [
    ...(hasNext ? [`M${x} 0V${middle}`] : []),
    ...(before === "line" ? [`M${x} ${middle}V${height}`] : []),
    ...(before === "join" ? [`M${x} ${middle}C${x} ${height - 6} ${left} ${middle + 6} ${left} ${height}`] : []),
  ];
  const isMark = entry.type !== "message" && entry.type !== "custom_message";
  const size = isHere ? 5.5 : entry.role === "user" ? 4.5 : 3.5;
  const tone = isActive ? "point" : "point aside";
  return (
    <svg class="tree-graph" width={width} height={height} aria-hidden="true">
      <path d={[...passing, ...own].join("")} />
      {isMark ? (
        <rect
          class={tone}
          x={x - 4}
          y={middle - 4}
          width="8"
          height="8"
          rx="1"
          transform={`rotate(45 ${x} ${middle})`}
        />
      ) : (
        <circle class={tone} cx={x} cy={middle} r={size} />
      )}
      {isHere && <circle class="here" cx={x} cy={middle} r={8} />}
    </svg>
  );
}

const notForkable = "pi forks before a message of a user, or at the end of the branch that it is on.";

/** What can be done with the row that is chosen. */
function Chosen({ open, tree }: RowsProps): JSX.Element {
  const { looks } = usePage();
  const { state, fork, goOn } = useBranching(open);
  const row = tree.rows.value.find(({ id }) => id === tree.chosen.value);
  useEffect(() => {
    state.value = { kind: "none" };
  }, [row?.id]);
  if (row === undefined || row.kind === "fold") {
    return (
      <div class="tree-chosen quiet">
        {row === undefined
          ? "Choose an entry to read its branch, fork it or go on from it."
          : "Enter opens and folds it."}
      </div>
    );
  }
  const { entry, isActive, isHere } = row;
  const permission = open.composer.permission.value;
  const isForkable = entry.role === "user" || isHere;
  const mayNot = permission.kind === "no" || state.value.kind === "working";
  return (
    <section class="tree-chosen" aria-label="The chosen entry">
      <p class="tree-chosen-words">
        <strong>
          <Visible text={kindOfEntry(entry)} />
        </strong>{" "}
        <Time at={entry.at} /> <Visible text={wordsOfEntry(entry)} />
      </p>
      <div class="row-of-buttons">
        <button type="button" class="button" onClick={() => leadTo(looks, open, tree, row)}>
          {isActive ? "Show" : "Read"}
          <span class="wide">{isActive ? "in the conversation" : "this branch"}</span>
        </button>
        <button
          type="button"
          class="button"
          disabled={mayNot}
          aria-disabled={!isForkable}
          title="Makes a new session of what is before it. The pi goes on there."
          onClick={() => {
            if (!isForkable) state.value = { kind: "refused", words: notForkable };
            else fork(entry.role === "user" ? { kind: "entry", entryId: entry.entryId } : { kind: "end" });
          }}
        >
          Fork<span class="wide">from here</span>
        </button>
        <button
          type="button"
          class="button"
          disabled={mayNot || isHere}
          title="The session goes on from this entry, in the same file. What follows it stays as a branch."
          onClick={() => goOn(entry.entryId)}
        >
          Go on<span class="wide">from here</span>
        </button>
      </div>
      {permission.kind === "no" && (
        <p class="said">
          <Words text={permission.words} />
        </p>
      )}
      <BranchingWords state={state.value} fork={fork} />
    </section>
  );
}

/** Leads to the message of an entry, or of the one before it that has one. */
function leadTo(looks: Looks, open: OpenSession, tree: Tree, { id, isActive }: EntryRow): void {
  let shown = id;
  for (const entry of tree.tree.value.from(id)) {
    shown = entry.entryId;
    if (hasRow(entry)) break;
  }
  if (isActive) void leadToMessage(looks, open.conversation, { entryId: shown });
  else {
    tree.openBranch(id);
    const branch = tree.branch.value;
    if (branch !== undefined) void showBranch(branch, shown);
  }
}

async function showBranch({ conversation }: ReadBranch, entryId: string): Promise<void> {
  while (conversation.state.value.kind === "loading") await new Promise(requestAnimationFrame);
  await showMessage(conversation, { entryId }, ".tree-branch .log");
}

interface BranchViewProps extends RowsProps {
  readonly branch: ReadBranch;
}

/** The conversation of another branch. */
function BranchView({ open, tree, branch }: BranchViewProps): JSX.Element {
  const { state, fork, goOn } = useBranching(open);
  const isHere = tree.tree.value.isActive(branch.leafId);
  const mayNot = open.composer.permission.value.kind === "no" || state.value.kind === "working";
  const close = (): void => {
    tree.closeBranch();
    tree.choose(branch.entryId);
  };
  return (
    <section
      class="tree-branch"
      aria-label="Another branch"
      onKeyDown={(event) => {
        if (event.key !== "Escape" || event.repeat) return;
        event.preventDefault();
        close();
      }}
    >
      <div class="tree-head">
        <button type="button" class="button small" onClick={close}>
          <Icon name="back" />
          Tree
        </button>
        <span>
          {isHere ? "The branch that pi is on" : "Another branch"}
          {!isHere && <span class="wide">: pi is not on it</span>}
        </span>
        {!isHere && (
          <button type="button" class="button small push-right" disabled={mayNot} onClick={() => goOn(branch.leafId)}>
            Go on<span class="wide">from its end</span>
          </button>
        )}
      </div>
      <BranchingWords state={state.value} fork={fork} />
      <Conversation conversation={branch.conversation} />
    </section>
  );
}
