import type { Static } from "typebox";
import { By } from "./client-identity.ts";
import { RunId, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

export const DialogId = Type.String({
  pattern: "^[0-9A-Za-z_-]{8,64}$",
  description: "Given by the daemon. It cannot be guessed, and stays the same at each replay and reconnect.",
});

/** What an extension asks for (docs/rpc-extension-ui.md of pi). */
export const DialogMethod = Type.Enum(["select", "confirm", "input", "editor"], {
  description:
    "`select`: one of `options`. `confirm`: yes or no. `input`: a line of text. `editor`: a text, with `prefill` to begin with.",
});
export type DialogMethod = Static<typeof DialogMethod>;

/** An answer, in pi's own words. */
export const DialogAnswer = Type.Union(
  [
    Type.Object(
      { value: Type.String({ description: "For `select` one of its options, for `input` and `editor` the text." }) },
      { additionalProperties: false },
    ),
    Type.Object({ confirmed: Type.Boolean({ description: "For `confirm`." }) }, { additionalProperties: false }),
    Type.Object(
      { cancelled: Type.Literal(true, { description: "For each of them: the extension goes on with its default." }) },
      { additionalProperties: false },
    ),
  ],
  { description: "As the dialog's method wants it, or `cancelled`." },
);
export type DialogAnswer = Static<typeof DialogAnswer>;

const how = Type.Enum(["answered", "cancelled", "ended"], {
  description:
    "`answered`: pi got an answer. `cancelled`: pi was told that it is dismissed, and the extension goes on with its " +
    "default. `ended`: pi does not wait for it any more, and got no answer.",
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
      "`client`: one has answered. `no_responder`: nobody was there who can. `deadline`: nobody did in time. `pi`: its own " +
      "timeout was near, or the run has settled. `abort`, `clear_queue`, `hibernate`, `close`: what was called. " +
      "`child_exited`, `daemon_restart`: pi has ended. `too_many`, `too_large`: over a limit, never open.",
  },
);
export type DialogEnder = Static<typeof by>;

const resolution = {
  how,
  by,
  client: Type.Optional({ ...By, description: "With `client`, where it is known: whose answer it was." }),
};

/** How a dialog has ended. The answer itself is told to nobody but pi, and is kept nowhere. */
export const DialogResolution = Type.Object({ ...resolution, at: Timestamp }, { additionalProperties: false });
export type DialogResolution = Static<typeof DialogResolution>;

const openToOthersAt = {
  ...Timestamp,
  description:
    "When clients other than `owner` may answer: until then they get `dialog_reserved`. Absent: all may, from the start.",
};

const about = {
  dialogId: DialogId,
  requestId: Type.String({ description: "pi's own id of it: the `id` of its `extension_ui_request`." }),
  method: DialogMethod,
  title: Type.String(),
};

export const Dialog = Type.Object(
  {
    ...about,
    sessionId: SessionId,
    generation: Type.Integer({ minimum: 1, description: "Which of the session's children asks." }),
    runId: Type.Optional({ ...RunId, description: "The run that is on; an extension's command can ask without one." }),
    message: Type.Optional(Type.String({ description: "Of a `confirm`." })),
    options: Type.Optional(Type.Array(Type.String(), { description: "Of a `select`." })),
    placeholder: Type.Optional(Type.String({ description: "Of an `input`." })),
    prefill: Type.Optional(Type.String({ description: "Of an `editor`." })),
    owner: Type.Optional({
      ...By,
      description:
        "The client whose prompt or push has led to the question: it started the run, or its prompt is not taken yet. Absent: not known, or these are several clients.",
    }),
    openToOthersAt: Type.Optional(openToOthersAt),
    openedAt: Timestamp,
    deadline: {
      ...Timestamp,
      description: "When it ends unanswered: 500 ms before pi's own timeout, else as the session's policy says.",
    },
    unattendedUntil: Type.Optional({
      ...Timestamp,
      description: "Given while nobody is subscribed who can answer: when it is cancelled if that stays so.",
    }),
    state: Type.Enum(["open", "resolved"]),
    resolution: Type.Optional(DialogResolution),
  },
  { additionalProperties: false },
);
export type Dialog = Static<typeof Dialog>;

/** A dialog in a word or two, for lists of sessions. */
export const DialogSummary = Type.Object(
  { ...about, title: Type.String({ description: "Its first 200 characters." }), deadline: Timestamp },
  { additionalProperties: false },
);
export type DialogSummary = Static<typeof DialogSummary>;

/** What `dialog/updated` says in addition to its place in the log. */
export const DialogUpdate = {
  dialogId: DialogId,
  requestId: about.requestId,
  openToOthersAt: { ...openToOthersAt, description: "When all clients may answer: now." },
};

/** What an extension has asked for that needs a terminal, and so cannot be shown to clients. */
export const DialogUnsupported = Type.Object(
  { method: Type.Literal("custom"), reason: Type.Literal("custom_ui_unsupported") },
  { additionalProperties: false },
);

/** What `dialog/resolved` says beside where it stands. */
export const DialogEnd = { ...about, title: DialogSummary.properties.title, ...resolution };

/** What becomes of a dialog when nobody is subscribed who can answer it. */
export const DialogPolicy = Type.Union(
  [
    Type.Object({ kind: Type.Literal("cancel") }, { additionalProperties: false }),
    Type.Object(
      {
        kind: Type.Literal("default"),
        afterMs: Type.Integer({ minimum: 0, maximum: 86_400_000, description: "Counted while nobody is there." }),
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
            description: "Counted from its opening, whoever is there. Default: a day.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
  ],
  {
    description:
      "For dialogs that nobody can answer: `cancel` them at once (the default), let the extension go on with its default " +
      "after a time, or `wait`.",
  },
);
export type DialogPolicy = Static<typeof DialogPolicy>;
