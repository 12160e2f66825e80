import { percent, usd } from "../../../protocol/number-text.ts";
import type {
  PruningChange,
  PruningExport,
  PruningInspection,
  PruningStats,
} from "../../../protocol/pruning/report.ts";

/** Lines of a shown list, and characters of an export. */
const maxLines = 40;
const maxExport = 64 * 1_024;

export const helpText = [
  "/dcp help: show this help.",
  "/dcp context: show the contents of the context, its blocks, and ranges that can be compressed.",
  "/dcp stats: show what was removed from the context, and the cost.",
  "/dcp sweep [N]: run the strategies now, or prune the outputs of the newest N tool calls.",
  "/dcp manual [on|off]: set whether the user decides when the model compresses.",
  "/dcp compress [FOCUS]: ask the model to compress now.",
  "/dcp decompress bN: restore the messages of a block.",
  "/dcp recompress bN: replace the messages by the block again.",
  "/dcp export: print blocks and ids as JSON.",
  "/dcp reload: reload the configuration.",
].join("\n");

export function contextText(inspected: PruningInspection): string {
  const { mode, off, window, byKind, blocks, candidates, messages } = inspected;
  const active = blocks.filter(({ state }) => state === "active");
  const newest = messages.at(-1)?.id;
  return [
    ...(off === undefined ? [] : [`The next request is not pruned: ${off}`]),
    window === null
      ? "The window is unknown."
      : `${window.used} of ${window.tokens} tokens (${shareText(window.used, window.tokens)}); reminders from ${window.min}, the limit is ${window.max}.`,
    Object.entries(byKind)
      .map(([kind, tokens]) => `${kind} ${tokens}`)
      .join(", "),
    `Manual mode is ${mode === "manual" ? "on" : "off"}.${newest === undefined ? "" : ` The newest message is ${newest}.`}`,
    ...list(
      "Blocks",
      blocks.filter(({ state }) => state !== "consumed").toReversed(),
      ({ id, topic, state, startId, endId, tokensBefore, tokensAfter }) =>
        `${id} ${topic}: ${state === "active" ? "" : `${state}, `}${range(startId, endId)}${tokensBefore} to ${tokensAfter} tokens`,
    ),
    ...(active.length === 0 && blocks.length === 0 ? ["There are no blocks."] : []),
    ...list(
      "Could be compressed",
      candidates,
      ({ startId, endId, tokens }) => `${range(startId, endId)}${tokens} tokens`,
    ),
  ].join("\n");
}

export function statsText(stats: PruningStats): string {
  const { now, removed, blocks, strategies, cache, net, standing, calls, echoes } = stats;
  return [
    `The next request has ${now} tokens less.`,
    `Removed in all: ${removed.count} times, ${removed.tokens} tokens.`,
    ...Object.entries(strategies).map(([name, { count, tokens }]) => `${name}: ${count} times, ${tokens} tokens`),
    ...list("Blocks", blocks.toReversed(), ({ id, topic, tokens }) => `${id} ${topic}: ${tokens} tokens`),
    `The cache was lost ${cache.misses} times: ${cache.tokens} tokens${costText(cache.usd)}.`,
    `Net: ${net.tokens} tokens${costText(net.usd)}.`,
    `Each request has ${standing.system} tokens of the prompt's section and ${standing.tool} of the tool for it.`,
    `Calls of compress: ${calls.succeeded} done, ${calls.failed} refused. Ids that the model wrote: ${echoes}.`,
  ].join("\n");
}

export function changeText({ state, blocks, pruned, tokens, notes }: PruningChange): string {
  const waits = state === "waiting" ? " It is done at the run's next boundary." : "";
  const what = [
    ...blocks.map(({ id, state: is }) => `${id} is ${is === "inactive" ? "open" : is}.`),
    ...(pruned.length === 0 ? [] : [`${pruned.length} outputs or arguments were taken out.`]),
  ];
  if (what.length === 0 && state === "done") return ["Nothing has changed.", ...notes].join("\n");
  const less = `About ${Math.abs(tokens)} tokens ${tokens < 0 ? "more" : "less"}.`;
  return [`${[...what, ...(state === "done" ? [less] : [])].join(" ")}${waits}`.trim(), ...notes].join("\n");
}

export function exportText(exported: PruningExport): string {
  const json = JSON.stringify(exported, undefined, 2);
  if (json.length <= maxExport) return json;
  return `The export has ${json.length} characters: ask for it by the method pruning/export.`;
}

function list<T>(title: string, items: readonly T[], line: (item: T) => string): string[] {
  if (items.length === 0) return [];
  const more = items.length > maxLines ? [`  and ${items.length - maxLines} more`] : [];
  return [`${title}:`, ...items.slice(0, maxLines).map((item) => `  ${line(item)}`), ...more];
}

function range(startId: string | undefined, endId: string | undefined): string {
  if (startId === undefined || endId === undefined) return "";
  return startId === endId ? `${startId}, ` : `${startId}–${endId}, `;
}

function shareText(part: number, whole: number): string {
  return whole > 0 ? percent(part / whole) : "–";
}

function costText(amount: number | null): string {
  return amount === null ? "" : `, ${usd(amount)}`;
}
