import { Epoch, Snapshot } from "./event.ts";
import { Seq, SessionId, Viewer } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { params, sessionIdOnly } from "./params.ts";
import { ProviderLevel } from "./provider.ts";
import { SessionInfo } from "./session.ts";

const eventTypes = Type.Array(Type.String({ pattern: "^[A-Za-z0-9_.:-]{1,64}$" }), {
  minItems: 1,
  maxItems: 64,
  description: "Only pi's events of these types. Other notifications come all the same. Default: all.",
});

/** Rows of the method table about following a session. */
export const subscriptionMethods = {
  "session/subscribe": {
    summary:
      "Sends the session's notifications to this connection after the result: those after the cursor, then live ones.",
    params: params({
      sessionId: SessionId,
      after: Type.Optional({
        ...Seq,
        description: "The last seq that the client has. Default: the session's present cursor (nothing is replayed).",
      }),
      epoch: Type.Optional({
        ...Epoch,
        description: "The log to which `after` belongs, as an earlier answer named it.",
      }),
      snapshot: Type.Optional(
        Type.Boolean({
          default: false,
          description:
            "Begin with the session as it is, in the answer. With `after`: only if something other than deltas is missing " +
            "after it.",
        }),
      ),
      catchUp: Type.Optional(
        Type.Boolean({
          default: false,
          description:
            "Begin before the first message or tool that is open in the current run. `present` has the earlier events that still hold. Without effect with `after` or `snapshot`, and while the daemon repeats the output of a pi that survived its former daemon. The result then has no `present`.",
        }),
      ),
      types: Type.Optional(eventTypes),
      deltas: Type.Optional(
        Type.Boolean({
          default: true,
          description:
            "`false` leaves out the high-rate events: `message_update`, `tool_execution_update`, `bash_execution_update`.",
        }),
      ),
      coalesceMs: Type.Optional(
        Type.Integer({
          minimum: 0,
          maximum: 10_000,
          default: 0,
          description: "For how long consecutive deltas of a content block are merged into one envelope.",
        }),
      ),
      inOrder: Type.Optional(
        Type.Boolean({
          default: false,
          description:
            "Sends the answers to this connection's calls to the session at the place where pi answered: between the same events. A notification waits for the answer before it, at most ten seconds, and while no more than 4 MiB of notifications wait. Stays on until the subscription ends.",
        }),
      ),
      holdEdits: Type.Optional(
        Type.Boolean({
          default: false,
          description:
            "While this subscription lasts, pi waits 25 ms between the `tool_execution_start` of an `edit` or `write` and its work, so that a client of the same machine can read the file as it was before.",
        }),
      ),
      formerText: Type.Optional(
        Type.Boolean({
          default: false,
          description:
            "Also `session/formerText`: what a file has before the tool `write` replaces it. While such a subscription lasts, pi reads the file before the tool's work.",
        }),
      ),
      stderr: Type.Optional(
        Type.Boolean({
          default: false,
          description:
            "Also `session/stderr`: what the session's pi writes to its stderr from now on; with `after: 0` also what it wrote since its start.",
        }),
      ),
      viewer: Type.Optional({
        ...Viewer,
        description: "Identifies the program that shows the session, such as a running editor: see `session/open`.",
      }),
      provider: Type.Optional(ProviderLevel),
      awake: Type.Optional(
        Type.Boolean({
          description:
            "Whether the session's pi is to be there for as long as this subscription: it is started now, and does not hibernate. Default: as it was; at first false.",
        }),
      ),
      dialogs: Type.Optional(
        Type.Boolean({ default: false, description: "Whether this connection can answer the dialogs of extensions." }),
      ),
    }),
    result: Type.Object(
      {
        cursor: {
          ...Seq,
          description:
            "The newest seq at the moment of the call, that of the snapshot, or with `catchUp` the one before what is open. All later ones follow.",
        },
        epoch: Epoch,
        session: Type.Optional({ ...SessionInfo, description: "With a snapshot: the session at `cursor`." }),
        snapshot: Type.Optional(Snapshot),
        present: Type.Optional(
          Type.Array(Type.Object({ type: Type.String() }, { additionalProperties: true }), {
            description:
              "With `catchUp`: pi's events up to `cursor` that still hold. `extension_ui_request` of `setStatus`, `setWidget` and `setTitle`, the newest of each key, and the `agent_start` of the current run. At most 128 of the first three, with 256 KiB together; after a restart of the daemon, older ones can be missing.",
          }),
        ),
      },
      { additionalProperties: false },
    ),
    http: {
      verb: "GET",
      path: "/v1/sessions/{sessionId}/events/stream",
      stream: true,
      formerPath: "/v1/sessions/{sessionId}/events",
    },
    scope: "none",
    asleep: "wake",
    capability: "observe",
    needs: [
      { param: "provider", value: "payload", capability: "payload" },
      { param: "awake", capability: "prompt" },
      { param: "dialogs", capability: "prompt" },
      { param: "holdEdits", capability: "prompt" },
      // The text may be new to the model, and with it to observers. Who prompts can have the model read the file.
      { param: "formerText", capability: "prompt" },
    ],
    since: "0.1.0",
    errors: ["session_not_found", "session_file_unusable", "invalid_request", "child_exited"],
    wakesWith: "awake",
    // A subscription belongs to one connection: a client that connects again renews it.
    retry: "never",
  },
  "session/unsubscribe": {
    summary: "Ends this connection's subscription. Succeeds also without one.",
    params: sessionIdOnly,
    result: Type.Object({ wasSubscribed: Type.Boolean() }, { additionalProperties: false }),
    http: { none: "a stream is ended by closing it" },
    scope: "none",
    capability: "observe",
    since: "0.1.0",
    errors: ["invalid_request"],
    // It succeeds also for a session that is closed.
    subjects: [],
    retry: "never",
  },
  "session/events": {
    summary: "A page of the session's log: notifications as a subscription replays them, without a subscription.",
    params: params({
      sessionId: SessionId,
      after: Type.Optional({
        ...Seq,
        default: 0,
        description: "The last seq that the client has. 0: all that is kept.",
      }),
      epoch: Type.Optional({
        ...Epoch,
        description: "The log to which `after` belongs, as an earlier answer named it.",
      }),
      limit: Type.Optional(
        Type.Integer({ minimum: 1, maximum: 1_000, default: 100, description: "At most so many notifications." }),
      ),
      types: Type.Optional(eventTypes),
      deltas: Type.Optional(Type.Boolean({ default: true, description: "`false` leaves out the high-rate events." })),
    }),
    result: Type.Object(
      {
        events: Type.Array(
          Type.Object(
            { method: Type.String(), params: Type.Object({}, { additionalProperties: true }) },
            { additionalProperties: false, description: "A notification; what cannot be replayed is a `session/gap`." },
          ),
        ),
        after: { ...Seq, description: "The cursor after this page: `after` of the next page." },
        cursor: { ...Seq, description: "The newest seq. Where `after` is the same, there are no further pages yet." },
        epoch: Epoch,
      },
      { additionalProperties: false },
    ),
    scope: "none",
    http: {
      verb: "GET",
      path: "/v1/sessions/{sessionId}/events/page",
      formerPath: "/v1/sessions/{sessionId}/events",
    },
    capability: "observe",
    since: "0.1.0",
    errors: ["session_not_found"],
    retry: "safe",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
