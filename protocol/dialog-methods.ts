import { Dialog, DialogAnswer, DialogId, DialogResolution } from "./dialog.ts";
import { SessionId } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { idempotencyKey, params } from "./params.ts";

/** Method rows for dialogs of extensions. */
export const dialogMethods = {
  "dialog/list": {
    summary: "The dialogs that are open, the oldest first.",
    params: params({
      sessionId: Type.Optional({ ...SessionId, description: "Only this session's." }),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 500, default: 100 })),
      after: Type.Optional({ ...DialogId, description: "`next` of the page before." }),
    }),
    result: Type.Object(
      {
        dialogs: Type.Array(Dialog),
        next: Type.Optional({ ...DialogId, description: "For `after`, where there are more." }),
      },
      { additionalProperties: false },
    ),
    scope: "none",
    http: { verb: "GET", path: "/v1/dialogs" },
    capability: "observe",
    since: "0.1.0",
    errors: ["session_not_found", "dialog_not_found"],
    subjects: [
      { kind: "session", param: "sessionId" },
      { kind: "dialog", param: "after" },
    ],
    retry: "safe",
  },
  "dialog/respond": {
    summary: "Answers a dialog. The first valid answer goes to pi; an invalid one changes nothing.",
    params: params({
      dialogId: DialogId,
      answer: Type.Optional({
        ...DialogAnswer,
        description: "As the dialog's method requires, or `cancelled`. Required without `abstain`.",
      }),
      abstain: Type.Optional(
        Type.Literal(true, {
          description:
            "Instead of `answer`: this connection, which is subscribed with `dialogs: true`, leaves the answer to others. The dialog is cancelled (`no_responder`) once all such connections have abstained.",
        }),
      ),
      idempotencyKey,
    }),
    result: Type.Object(
      {
        dialogId: DialogId,
        resolution: Type.Optional({
          ...DialogResolution,
          description: "Absent: the connection abstained, and the dialog is still open.",
        }),
      },
      { additionalProperties: false },
    ),
    scope: "none",
    http: { verb: "POST", path: "/v1/dialogs/{dialogId}/answer" },
    capability: "prompt",
    since: "0.1.0",
    errors: ["dialog_not_found", "stale", "dialog_reserved", "not_controller", "outcome_unknown"],
    retry: "keyed",
    effect: "answer",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
