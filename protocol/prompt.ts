import type { Static } from "typebox";
import { By } from "./client-identity.ts";
import { PromptId, RunId, Seq, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** What to do with a prompt that arrives during a run. */
export const IfRunning = Type.Enum(["refuse", "steer", "followUp"]);
export type IfRunning = Static<typeof IfRunning>;

export const Disposition = Type.Enum(["started", "queued", "handled"], {
  description: "`handled`: an extension or command took it; no run begins for it.",
});
export type Disposition = Static<typeof Disposition>;

export const PromptState = Type.Enum(
  ["stored", "started", "queued", "handled", "inserted", "lost", "withdrawn", "refused"],
  { description: "How far the prompt has come; see [Prompts and runs](#prompts-and-runs)." },
);
export type PromptState = Static<typeof PromptState>;

export const RunOutcome = Type.Enum(["settled", "aborted", "failed", "interrupted"], {
  description: "How the run ended; see [Prompts and runs](#prompts-and-runs).",
});
export type RunOutcome = Static<typeof RunOutcome>;

const stopReason = Type.Optional(
  Type.String({ description: "pi's word for how the last assistant message ended: `stop`, `length`, `error`, …" }),
);
const error = Type.Optional(
  Type.String({ description: "What that message says went wrong; at most 2,000 characters." }),
);

/** One prompt's tracked life. */
export const Prompt = Type.Object(
  {
    promptId: PromptId,
    sessionId: SessionId,
    state: PromptState,
    text: Type.String({
      description:
        "Its first 1,000 characters. `prompt/get` gives all of it until it is inserted, handled or withdrawn.",
    }),
    length: Type.Integer({ minimum: 0, description: "Characters of the whole text." }),
    disposition: Type.Optional(Disposition),
    runId: Type.Optional({ ...RunId, description: "The run that it started, or that took it in." }),
    entryId: Type.Optional(Type.String({ description: "Of pi's entry that has it, where that was found." })),
    outcome: Type.Optional({ ...RunOutcome, description: "How that run ended." }),
    stopReason,
    error,
    by: Type.Optional(By),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { additionalProperties: false },
);
export type Prompt = Static<typeof Prompt>;

export const PromptResult = Type.Object(
  {
    promptId: PromptId,
    runId: Type.Optional(RunId),
    disposition: Disposition,
    state: Type.Optional({ ...PromptState, description: "With `wait`, and for a repeated `promptId`." }),
    outcome: Type.Optional({ ...RunOutcome, description: "With `wait`: how the run ended." }),
    stopReason,
    error,
    text: Type.Optional(
      Type.String({
        description:
          "With `wait`: the text of the run's last assistant message, at most 64 KiB of it. Absent where it is not known any more; the transcript has it.",
      }),
    ),
    textTruncated: Type.Optional(Type.Boolean({ description: "There was more of it." })),
    warnings: Type.Optional(
      Type.Array(Type.Enum(["duplicate_prompt"]), {
        maxItems: 1,
        description:
          "`duplicate_prompt`: the session's context ends with this very text, unanswered: the model reads it twice.",
      }),
    ),
  },
  { additionalProperties: false },
);
export type PromptResult = Static<typeof PromptResult>;

const told = { sessionId: SessionId, seq: Seq, at: Timestamp, by: Type.Optional(By) };
const promptIds = Type.Array(PromptId, { maxItems: 256, description: "The prompts that it has taken in; the newest." });

export const PromptUpdated = Type.Object({ ...told, prompt: Prompt }, { additionalProperties: false });

export const RunStarted = Type.Object({ ...told, runId: RunId, promptIds }, { additionalProperties: false });

export const RunEnded = Type.Object(
  { ...told, runId: RunId, outcome: RunOutcome, stopReason, error, promptIds, startedAt: Timestamp },
  { additionalProperties: false },
);
