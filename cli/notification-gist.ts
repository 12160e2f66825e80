import {
  isToolExecutionEnd,
  isToolExecutionStart,
  type LogNotification,
  type PiEvent,
  textOf,
} from "../client/index.ts";
import type { PiMessage } from "../client/pi-events.ts";
import { percent, usd } from "../protocol/number-text.ts";
import { saidByExtension, toolLine } from "./run-printer.ts";

/** Summarises a notification in a few words. */
export function gist(notification: LogNotification): string {
  const { name, params } = notification;
  switch (name) {
    case "session/event":
      return gistOfEvent(params.event);
    case "session/gap":
      return `${params.from} to ${params.to} are missing: ${params.reason}`;
    case "session/updated":
      return [params.session.state, modelName(params.session.model), by(params)]
        .filter((word) => word !== "")
        .join(" ");
    case "session/replaced":
      return `${params.to} took over the pi process`;
    case "session/navigated":
      return `from ${params.from ?? "the beginning"} to ${params.to ?? "the beginning"}${by(params)}`;
    case "session/labelled":
      return `${params.entryId}: ${params.label ?? "no label"}${by(params)}`;
    case "session/foreignWrite":
      return `another program wrote to the file: ${params.action}`;
    case "session/controlChanged":
      return `${params.change}${by(params)}`;
    case "prompt/updated":
      return `${params.prompt.state}${by(params)}: ${params.prompt.text}`;
    case "run/started":
      return `${params.runId}${by(params)}`;
    case "run/ended":
      return `${params.outcome}${params.error === undefined ? "" : `: ${params.error}`}`;
    case "dialog/opened":
      return `${params.dialog.method}: ${params.dialog.title}`;
    case "dialog/updated":
      return `${params.dialogId} is open to all clients`;
    case "dialog/unsupported":
      return `an extension called ctx.ui.${params.method}(), which needs a terminal`;
    case "dialog/resolved":
      return `${params.how} by ${params.client?.name ?? params.by}`;
    case "delivery/updated":
      return `${params.delivery.deliveryId} ${params.delivery.state}`;
    case "pending/updated":
      return params.pending.map(({ label }) => label).join(", ") || "nothing";
    case "context/failed":
      return `no context: ${params.error.message}`;
    case "cache/broken":
      return `${params.missedTokens} tokens were not read from the cache: ${params.cause}`;
    case "cost/checkpointed":
      return `${params.event.label}: ${usd(params.event.cumulativeCost)} since the session began`;
    case "cost/budgetReached":
      return `${params.level}: ${usd(params.spentUsd)} of ${usd(params.budgetUsd)}`;
    case "optimisation/degraded":
      return `${params.part}: ${params.reason}`;
    case "pruning/changed":
      return `${params.cause}: ${params.tokens} tokens fewer`;
    case "pruning/nudged":
      return `${params.kind}: ${percent(params.usage)} of the window`;
    case "pruning/degraded":
      return `${params.reason}: ${params.message}`;
    default:
      // A notification of a newer daemon.
      return "";
  }
}

function gistOfEvent(event: PiEvent): string {
  const { message } = event as { readonly message?: PiMessage };
  if (isToolExecutionStart(event)) return toolLine(event.toolName, event.args);
  if (isToolExecutionEnd(event)) return `[${event.toolName}] ${event.isError ? "failed" : "done"}`;
  if (event.type === "extension_ui_request") return gistOfExtension(event);
  if (event.type === "rpcd_entry") return gistOfEntry(event["entry"]);
  if (typeof message === "object" && message !== null)
    return `${message.role}: ${textOf(message) || message.stopReason || ""}`;
  return "";
}

function gistOfExtension(event: PiEvent): string {
  const said = saidByExtension(event);
  if (said === undefined)
    return [event["method"], event["title"]].filter((word) => typeof word === "string").join(": ");
  return said.key === undefined ? said.text : `${said.key}: ${said.text === "" ? "no status" : said.text}`;
}

function gistOfEntry(entry: unknown): string {
  const { type, message } = (typeof entry === "object" && entry !== null ? entry : {}) as Readonly<
    Record<string, unknown>
  >;
  return typeof message === "object" && message !== null
    ? `${(message as PiMessage).role}: ${textOf(message as PiMessage)}`
    : String(type ?? "");
}

function by({ by: who }: { readonly by?: { readonly name?: string } | undefined }): string {
  return who?.name === undefined ? "" : ` by ${who.name}`;
}

function modelName(model: { readonly provider: string; readonly id: string } | undefined): string {
  return model === undefined ? "" : `${model.provider}/${model.id}`;
}
