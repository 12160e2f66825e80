import type { RequestOutcome, ShownRequest } from "../state/request-facts.ts";
import { msWords, shortCount } from "./widgets/figures.tsx";
import type { IconName } from "./widgets/icon.tsx";

/** The sign, the colour and the word of how a request ended. */
export const outcomeSigns: Readonly<Record<RequestOutcome, readonly [icon: IconName, tone: string, word: string]>> = {
  sending: ["running", "is-accent", "sending"],
  answering: ["running", "is-accent", "answering"],
  answered: ["check", "is-good", "answered"],
  failed: ["failed", "is-bad", "failed"],
  stopped: ["stop", "is-warn", "stopped"],
};

const kinds: Readonly<Record<ShownRequest["kind"], string>> = {
  answer: "",
  compaction: "compaction",
  branch_summary: "summary of a branch",
  cache_warm: "keeps the cache",
};

/** What a request was for, if not for an answer. */
export function kindOf({ kind }: ShownRequest): string {
  return kinds[kind];
}

/** `id` of `provider/id`. */
export function modelName(model: string): string {
  return model.slice(model.indexOf("/") + 1);
}

/** Why the provider had less in its cache. */
export function causeWords(cause: string): string {
  const [kind = "", name = ""] = split(cause);
  switch (kind) {
    case "tool_set":
      return "other tools";
    case "tool_order":
      return "another order of the tools";
    case "section":
      return `“${name}” of the system prompt changed`;
    case "edit":
      return name === "foreign" ? "an extension changed the context" : `${name} changed the context`;
    case "compaction":
      return "a compaction";
    case "branch":
      return "another branch";
    case "model":
      return "another model or thinking level";
    case "expired":
      return "the cache was too old";
    case "service":
      return "the provider read less than it could";
    default:
      return cause;
  }
}

function split(cause: string): readonly string[] {
  const at = cause.indexOf(":");
  return at < 0 ? [cause] : [cause.slice(0, at), cause.slice(at + 1)];
}

/** One request in a sentence, for those who do not see its bar. */
export function requestWords(request: ShownRequest): string {
  const { number, model, outcome, usage, lost, deliveryIds, totalMs } = request;
  const kind = kindOf(request);
  return [
    `Request ${number}`,
    ...(kind === "" ? [] : [kind]),
    ...(model === undefined ? [] : [modelName(model)]),
    outcomeSigns[outcome][2],
    usage === undefined ? "tokens not known" : `${shortCount(usage.totalTokens)} tokens`,
    ...(lost === undefined ? [] : [`${shortCount(lost.tokens)} lost from the cache`]),
    ...(deliveryIds.length === 0
      ? []
      : [deliveryIds.length === 1 ? "carries a push" : `carries ${deliveryIds.length} pushes`]),
    ...(totalMs === undefined ? [] : [msWords(totalMs)]),
  ].join(", ");
}

/** All requests in a sentence. */
export function allWords(requests: readonly ShownRequest[], isWhole: boolean): string {
  const count = (holds: (request: ShownRequest) => boolean): number => requests.filter(holds).length;
  const known = requests.flatMap(({ usage }) => usage ?? []);
  const read = known.reduce((sum, { cacheRead }) => sum + cacheRead, 0);
  const input = known.reduce((sum, { totalTokens, output }) => sum + totalTokens - output, 0);
  const failed = count(({ outcome }) => outcome === "failed");
  const stopped = count(({ outcome }) => outcome === "stopped");
  const lost = count((request) => request.lost !== undefined);
  const pushes = count(({ deliveryIds }) => deliveryIds.length > 0);
  const facts = [
    ...(input > 0 ? [`${Math.round((read / input) * 100)} % of the input came from caches`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(stopped > 0 ? [`${stopped} stopped`] : []),
    ...(lost > 0 ? [`${lost} lost ${lost === 1 ? "its" : "their"} cache`] : []),
    ...(pushes > 0 ? [pushes === 1 ? "1 carried a push" : `${pushes} carried pushes`] : []),
  ];
  const many = `${isWhole ? "" : "The newest "}${requests.length} request${requests.length === 1 ? "" : "s"}`;
  return `${many}${facts.length === 0 ? "" : `: ${facts.join(", ")}`}.`;
}
