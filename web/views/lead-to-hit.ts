import type { ConversationView } from "../state/conversation.ts";
import { type HitKind, literal, oneLine, textsOf } from "../state/finding.ts";
import type { Item } from "../state/items.ts";
import type { OpenSession } from "../state/open-session.ts";
import type { Hit } from "../state/search.ts";
import type { Tree } from "../state/session-tree.ts";
import { focusRow, type RowPlace } from "./lead.ts";
import { loadedPlaces } from "./loaded.ts";
import type { Tab } from "./place.ts";
import { panelId } from "./session-tabs.tsx";

/** How many pages are read to find an entry. */
const maxPages = 500;
/** How many frames a view may take to be built. */
const maxFrames = 60;
/** How many matches are marked in one row. */
const maxMarks = 500;
const highlightName = "found";

const gone = "The conversation does not show this any more.";
const unread =
  "The tree is long, and this entry was not read. Read earlier entries in the tab Tree, then search again.";

/**
 * The row of a hit, after loading the pages before it. A text: why there is none. `isWanted` is asked before each page.
 */
export async function findRow(
  conversation: ConversationView,
  hit: Hit,
  query: string,
  isWanted: () => boolean,
): Promise<RowPlace | string> {
  conversation.setFilter("all");
  await loaded(conversation);
  for (let pages = 0; pages < maxPages && isWanted(); pages += 1) {
    const place = rowOf(conversation, hit, query);
    if (place !== undefined) return place;
    const state = conversation.state.value;
    if (state.kind === "refused") return state.words;
    if (!conversation.hasOlder.value) return gone;
    const outcome = await conversation.older();
    if (outcome.kind === "refused") return outcome.words;
  }
  return gone;
}

/** The conversation of the branch of a hit, in the session's tree. A text: why there is none. */
export async function otherBranch(open: OpenSession, { entryId }: Hit): Promise<ConversationView | string> {
  const places = loadedPlaces.peek();
  if (places === undefined || entryId === undefined) return gone;
  open.openFigures(places);
  const tree = open.figures.peek()?.tree;
  if (tree === undefined) return gone;
  await loaded(tree);
  if (!tree.tree.value.has(entryId)) {
    const state = tree.state.value;
    return state.kind === "refused" ? state.words : tree.hasEarlier.value ? unread : gone;
  }
  tree.openBranch(entryId);
  return tree.branch.value?.conversation ?? gone;
}

/** Shows a row, opens what is folded in it, and marks the words. */
export async function showFound(place: RowPlace, query: string, tab: Tab): Promise<void> {
  clearMarks();
  const log = await shownLog(`#${panelId(tab)}:not([inert]) .log`);
  const row = log === null ? undefined : await focusRow(log, place);
  if (row === undefined) return;
  for (const fold of row.querySelectorAll("details")) fold.open = true;
  await drawn();
  let ranges = rangesIn(row, query);
  const whole = row.querySelector<HTMLElement>("button.whole");
  if (ranges.length === 0 && whole !== null) {
    whole.click();
    await drawn();
    ranges = rangesIn(row, query);
  }
  ranges[0]?.startContainer.parentElement?.scrollIntoView({ block: "center" });
  if ("highlights" in CSS) CSS.highlights.set(highlightName, new Highlight(...ranges));
}

export function clearMarks(): void {
  if ("highlights" in CSS) CSS.highlights.delete(highlightName);
}

/** Resolves when the first page is there. */
function loaded({ state }: Pick<ConversationView, "state"> | Pick<Tree, "state">): Promise<void> {
  return new Promise((resolve) => {
    let stop = (): void => {};
    let isOver = false;
    stop = state.subscribe(({ kind }) => {
      if (kind === "loading") return;
      isOver = true;
      stop();
      resolve();
    });
    if (isOver) stop();
  });
}

/** The conversation, when its view is built. */
async function shownLog(selector: string): Promise<HTMLElement | null> {
  for (let frames = 0; ; frames += 1) {
    const log = document.querySelector<HTMLElement>(selector);
    if (log !== null || frames === maxFrames) return log;
    await new Promise(requestAnimationFrame);
  }
}

async function drawn(): Promise<void> {
  for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
}

const itemKinds: Readonly<Record<HitKind, Item["kind"]>> = {
  user: "user",
  assistant: "text",
  thinking: "thought",
  toolCall: "tool",
  toolResult: "tool",
  bash: "tool",
  custom: "push",
  summary: "note",
  name: "note",
};

interface FoundRow extends RowPlace {
  readonly item: Item;
}

function rowsWhere({ groups }: ConversationView, fits: (item: Item, rowId: string) => boolean): readonly FoundRow[] {
  return groups.value.flatMap(({ id: group, rows }) =>
    rows.value.flatMap(({ id: rowId, item }) => (fits(item.value, rowId) ? [{ group, rowId, item: item.value }] : [])),
  );
}

/** Of the rows of the entry, the one that has the text. A row that came while the page was open has no entry. */
function rowOf(conversation: ConversationView, hit: Hit, query: string): RowPlace | undefined {
  const { entryId, rowId, kind } = hit;
  const rows = rowsWhere(conversation, (item, id) => {
    const isOfEntry = entryId !== undefined && [item.entryId, outputEntry(item)].includes(entryId);
    return isOfEntry || id === rowId || (item.entryId === undefined && hasExcerpt(item, hit));
  });
  const ofKind = rows.filter(({ item }) => item.kind === itemKinds[kind]);
  return ofKind.find(({ item }) => has(item, query)) ?? ofKind[0] ?? rows[0];
}

function outputEntry(item: Item): string | undefined {
  return item.kind === "tool" ? item.outputEntryId : undefined;
}

/** The arguments of a tool are shown as JSON. */
function hasExcerpt(item: Item, hit: Hit): boolean {
  const excerpt = `${hit.before}${hit.match}${hit.after}`.replace(/^…|…$/g, "");
  const inJson = JSON.stringify(excerpt).slice(1, -1);
  return textsOf(item).some(
    ([kind, text]) => kind === hit.kind && [excerpt, inJson].some((one) => oneLine(text).includes(one)),
  );
}

function has(item: Item, query: string): boolean {
  const pattern = literal(query);
  return textsOf(item).some(([, text]) => pattern.test(text));
}

function rangesIn(row: HTMLElement, query: string): readonly Range[] {
  const nodes: Text[] = [];
  const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) nodes.push(node as Text);
  const places = placesOf(nodes);
  const text = nodes.map(({ data }) => data).join("");
  const ranges: Range[] = [];
  for (const { index, 0: match } of text.matchAll(literal(query, "giu"))) {
    if (ranges.length === maxMarks) break;
    const [start, end] = [places(index), places(index + match.length - 1)];
    if (start === undefined || end === undefined) continue;
    const range = new Range();
    range.setStart(start.node, start.offset);
    range.setEnd(end.node, end.offset + 1);
    ranges.push(range);
  }
  return ranges;
}

/** Finds the node of a place in the text of all. Places are asked for in their order. */
function placesOf(nodes: readonly Text[]): (place: number) => { node: Text; offset: number } | undefined {
  let at = 0;
  let from = 0;
  return (place) => {
    for (let node = nodes[at]; node !== undefined; node = nodes[at]) {
      if (place < from + node.length) return { node, offset: place - from };
      from += node.length;
      at += 1;
    }
    return undefined;
  };
}
