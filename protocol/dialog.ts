import type { Static } from "typebox";
import { By } from "./client-identity.ts";
import { RunId, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

export const DialogId = Type.String({
  pattern: "^[0-9A-Za-z_-]{8,64}$",
  description: "Issued by the daemon. Unguessable, and the same after a replay or reconnect.",
});

/** What an extension asks for (docs/rpc-extension-ui.md of pi). */
export const DialogMethod = Type.Enum(["select", "confirm", "input", "editor"], {
  description:
    "`select`: one of `options`. `confirm`: yes or no. `input`: a line of text. `editor`: a text; `prefill` is its initial content.",
});
export type DialogMethod = Static<typeof DialogMethod>;

/** An answer, in pi's own format. */
export const DialogAnswer = Type.Union(
  [
    Type.Object(
      { value: Type.String({ description: "For `select` one of its options; for `input` and `editor` the text." }) },
      { additionalProperties: false },
    ),
    Type.Object({ confirmed: Type.Boolean({ description: "For `confirm`." }) }, { additionalProperties: false }),
    Type.Object(
      { cancelled: Type.Literal(true, { description: "For every method: the extension continues with its default." }) },
      { additionalProperties: false },
    ),
  ],
  { description: "As the dialog's method requires, or `cancelled`." },
);
export type DialogAnswer = Static<typeof DialogAnswer>;

const how = Type.Enum(["answered", "cancelled", "ended"], {
  description:
    "`answered`: pi got an answer. `cancelled`: pi got a dismissal, and the extension continues with its " +
    "default. `ended`: pi no longer waits for it, and got no answer.",
});

const by = Type.Enum(
  [
    "client",
    "no_responder",
    "deadline",
    "pi",
    "abort",
    "clear_queue",
    "hibernate",
    "close",
    "child_exited",
    "daemon_restart",
    "too_many",
    "too_large",
  ],
  {
    description:
      "`client`: a client answered. `no_responder`: no client could answer, or all that could have abstained. `deadline`: no answer in time. `pi`: its own " +
      "timeout was near, or the run has settled. `abort`, `clear_queue`, `hibernate`, `close`: the call that ended it. " +
      "`child_exited`, `daemon_restart`: pi has ended. `too_many`, `too_large`: a limit was exceeded, and it was never open.",
  },
);
export type DialogEnder = Static<typeof by>;

const resolution = {
  how,
  by,
  client: Type.Optional({ ...By, description: "With `client`: the client that answered, if known." }),
};

/** How a dialog ended. Only pi receives the answer itself; it is not stored. */
export const DialogResolution = Type.Object({ ...resolution, at: Timestamp }, { additionalProperties: false });
export type DialogResolution = Static<typeof DialogResolution>;

const openToOthersAt = {
  ...Timestamp,
  description:
    "When clients other than `owner` may answer: until then they get `dialog_reserved`. Absent: all may, from the start.",
};

const about = {
  dialogId: DialogId,
  requestId: Type.String({ description: "pi's own id of the dialog: the `id` of its `extension_ui_request`." }),
  method: DialogMethod,
  title: Type.String(),
};

export const Dialog = Type.Object(
  {
    ...about,
    sessionId: SessionId,
    generation: Type.Integer({ minimum: 1, description: "The generation of the child that asks." }),
    runId: Type.Optional({ ...RunId, description: "The current run; an extension's command can ask without one." }),
    message: Type.Optional(Type.String({ description: "Of a `confirm`." })),
    options: Type.Optional(Type.Array(Type.String(), { description: "Of a `select`." })),
    placeholder: Type.Optional(Type.String({ description: "The placeholder of an `input`." })),
    prefill: Type.Optional(Type.String({ description: "The initial text of an `editor`." })),
    owner: Type.Optional({
      ...By,
      description:
        "The client whose prompt or push caused the question: it started the run, or its prompt has not been taken yet. Absent if unknown or ambiguous.",
    }),
    openToOthersAt: Type.Optional(openToOthersAt),
    openedAt: Timestamp,
    deadline: {
      ...Timestamp,
      description: "When it ends unanswered: 500 ms before pi's own timeout, otherwise by the session's policy.",
    },
    unattendedUntil: Type.Optional({
      ...Timestamp,
      description: "Present while no subscriber can answer: the time when it is cancelled unless one appears.",
    }),
    state: Type.Enum(["open", "resolved"]),
    resolution: Type.Optional(DialogResolution),
  },
  { additionalProperties: false },
);
export type Dialog = Static<typeof Dialog>;

/** Summary of a dialog, for lists of sessions. */
export const DialogSummary = Type.Object(
  { ...about, title: Type.String({ description: "Its first 200 characters." }), deadline: Timestamp },
  { additionalProperties: false },
);
export type DialogSummary = Static<typeof DialogSummary>;

/** Fields of `dialog/updated` other than its position in the log. */
export const DialogUpdate = {
  dialogId: DialogId,
  requestId: about.requestId,
  openToOthersAt: { ...openToOthersAt, description: "When all clients may answer: now." },
};

/** A request of an extension that needs a terminal and cannot be shown to clients. */
export const DialogUnsupported = Type.Object(
  { method: Type.Literal("custom"), reason: Type.Literal("custom_ui_unsupported") },
  { additionalProperties: false },
);

/** Fields of `dialog/resolved` other than its position in the log. */
export const DialogEnd = { ...about, title: DialogSummary.properties.title, ...resolution };

/** Policy for dialogs that no subscriber can answer. */
export const DialogPolicy = Type.Union(
  [
    Type.Object({ kind: Type.Literal("cancel") }, { additionalProperties: false }),
    Type.Object(
      {
        kind: Type.Literal("default"),
        afterMs: Type.Integer({
          minimum: 0,
          maximum: 86_400_000,
          description: "Counted while no subscriber can answer.",
        }),
      },
      { additionalProperties: false },
    ),
    Type.Object(
      {
        kind: Type.Literal("wait"),
        deadlineMs: Type.Optional(
          Type.Integer({
            minimum: 1_000,
            maximum: 604_800_000,
            description: "Counted from its opening, regardless of subscribers. Default: one day.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
  ],
  {
    description:
      "For dialogs that no subscriber can answer: `cancel` them immediately (the default), let the extension continue with its default " +
      "after a time, or `wait`.",
  },
);
export type DialogPolicy = Static<typeof DialogPolicy>;
