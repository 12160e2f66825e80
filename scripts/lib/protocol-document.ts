import type { TSchema } from "typebox";
import { By, ClientId } from "../../protocol/client-identity.ts";
import { Content, ImageBlock, TextBlock } from "../../protocol/content.ts";
import { Control, ControlChange, ControlPolicy } from "../../protocol/control.ts";
import { ForeignWrite, ForeignWriteAction, OnForeignWrite, SessionFileReason } from "../../protocol/custody.ts";
import { DaemonInfo, PiInfo } from "../../protocol/daemon.ts";
import { Attempt, Delivery, DeliveryState, Evidence, HistoryStep, Reason } from "../../protocol/delivery.ts";
import { Dialog, DialogAnswer, DialogId, DialogMethod, DialogPolicy, DialogResolution } from "../../protocol/dialog.ts";
import { errorCatalogue } from "../../protocol/errors.ts";
import { Envelope, Gap } from "../../protocol/event.ts";
import { DeliveryId, PromptId, SessionId } from "../../protocol/ids.ts";
import type { MethodRow } from "../../protocol/method-row.ts";
import { methods } from "../../protocol/methods.ts";
import { type NotificationRow, notifications } from "../../protocol/notifications.ts";
import { PendingItem } from "../../protocol/pending.ts";
import { type PiCommandRoute, piCommands } from "../../protocol/pi-commands.ts";
import { Disposition, Prompt, PromptResult, PromptState, RunOutcome } from "../../protocol/prompt.ts";
import { ChildExit, LostPrompt, ModelRef, SessionInfo, SessionState } from "../../protocol/session.ts";
import { StoredSessionInfo } from "../../protocol/stored-session.ts";
import { filled } from "./generated-parts.ts";
import { protocolLimits } from "./protocol-limits.ts";
import { SchemaText, table } from "./schema-text.ts";

// The parts of PROTOCOL.md that derive from the code. Each stands between two markers.

const objects: Readonly<Record<string, TSchema>> = {
  SessionInfo,
  PromptResult,
  Prompt,
  By,
  Control,
  StoredSessionInfo,
  ForeignWrite,
  LostPrompt,
  Dialog,
  DialogResolution,
  PendingItem,
  ChildExit,
  ModelRef,
  Delivery,
  Attempt,
  HistoryStep,
  Reason,
  Envelope,
  Gap,
  DaemonInfo,
  PiInfo,
  TextBlock,
  ImageBlock,
};
const others: Readonly<Record<string, TSchema>> = {
  SessionId,
  DeliveryId,
  PromptId,
  ClientId,
  SessionState,
  PromptState,
  Disposition,
  RunOutcome,
  ControlPolicy,
  ControlChange,
  OnForeignWrite,
  ForeignWriteAction,
  SessionFileReason,
  DialogId,
  DialogMethod,
  DialogAnswer,
  DialogPolicy,
  DeliveryState,
  Evidence,
  Content,
};
const text = new SchemaText({ ...others, ...objects });

const parts: Readonly<Record<string, () => string>> = {
  limits: () =>
    table(
      ["limit", "value", "what it bounds, and what happens then"],
      protocolLimits.map(({ name, value, meaning }) => [`\`${name}\``, value, meaning]),
    ),
  methods: () =>
    Object.entries<MethodRow>(methods)
      .map(([name, row]) => method(name, row))
      .join("\n\n"),
  commands: () =>
    table(
      ["pi's command", "method", "by `session/command`"],
      Object.entries<PiCommandRoute>(piCommands).map(([name, { method: does, asItIs, setting }]) => [
        `\`${name}\``,
        does === undefined ? "none yet" : `[${does}](#${does.replace("/", "").toLowerCase()})`,
        asItIs ? (setting === undefined ? "yes" : "with `confirmShared`") : "no",
      ]),
    ),
  notifications: () =>
    Object.entries<NotificationRow>(notifications)
      .map(([name, row]) => section(name, [row.summary, params(row.params), `Since: ${row.since}.`]))
      .join("\n\n"),
  types: () => [...Object.entries(others).map(alias), ...Object.entries(objects).map(object)].join("\n\n"),
  errors: () =>
    table(
      ["name", "code", "HTTP", "retry", "meaning"],
      Object.entries(errorCatalogue).map(([name, { code, httpStatus, retryable, meaning }]) => [
        `\`${name}\``,
        String(code),
        String(httpStatus),
        retryable ? "yes" : "no",
        meaning,
      ]),
    ),
};

/** PROTOCOL.md with every generated part as the code says it. Throws if a part's markers are missing. */
export function withGeneratedParts(document: string): string {
  return filled(document, parts);
}

function method(name: string, row: MethodRow): string {
  const { summary, params: taken, result, scope, capability, since, errors, http } = row;
  const query = http?.ifQuery === undefined ? "" : `?${http.ifQuery}=…`;
  const route = http === undefined ? "" : ` HTTP: \`${http.verb} ${http.path}${query}\`.`;
  const named = errors.length === 0 ? "none of its own" : errors.map((error) => `\`${error}\``).join(", ");
  return section(name, [
    summary,
    params(taken),
    resultText(result),
    `Errors: ${named}. Scope: ${scope}. Capability: ${capability}. Since: ${since}.${route}`,
  ]);
}

function params(schema: TSchema): string {
  const said = text.type(schema);
  if (said.startsWith("[")) return `Params: ${said}.`;
  const fields = text.fields(schema);
  return fields === undefined ? "Params: none." : `Params:\n\n${fields}`;
}

function resultText(schema: TSchema): string {
  const said = text.type(schema);
  const fields = said.startsWith("[") ? undefined : text.fields(schema);
  return fields === undefined ? `Result: ${said}.` : `Result:\n\n${fields}`;
}

function alias([name, schema]: readonly [string, TSchema]): string {
  const { description } = schema as { readonly description?: string };
  const said = new SchemaText(objects).type(schema);
  return section(name, [
    `${said.charAt(0).toUpperCase()}${said.slice(1)}.${description === undefined ? "" : ` ${description}`}`,
  ]);
}

function object([name, schema]: readonly [string, TSchema]): string {
  const { description } = schema as { readonly description?: string };
  return section(name, [...(description === undefined ? [] : [description]), text.fields(schema) ?? ""]);
}

function section(heading: string, paragraphs: readonly string[]): string {
  return [`### ${heading}`, ...paragraphs].join("\n\n");
}
