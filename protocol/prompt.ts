import type { Static } from "typebox";
import { By } from "./client-identity.ts";
import { PromptId, RunId, Seq, SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** What to do with a prompt that arrives during a run. */
export const IfRunning = Type.Enum(["refuse", "steer", "followUp"]);
export type IfRunning = Static<typeof IfRunning>;

export const Disposition = Type.Enum(["started", "queued", "handled"], {
  description: "`handled`: an extension or command handled it; it starts no run.",
});
export type Disposition = Static<typeof Disposition>;

export const PromptState = Type.Enum(
  ["stored", "started", "queued", "handled", "inserted", "lost", "withdrawn", "refused"],
  { description: "The prompt's state; see [Prompts and runs](#prompts-and-runs)." },
);
export type PromptState = Static<typeof PromptState>;

export const RunOutcome = Type.Enum(["settled", "aborted", "failed", "interrupted"], {
  description: "How the run ended; see [Prompts and runs](#prompts-and-runs).",
});
export type RunOutcome = Static<typeof RunOutcome>;

const stopReason = Type.Optional(
  Type.String({ description: "pi's stop reason of the last assistant message: `stop`, `length`, `error`, …" }),
);
const error = Type.Optional(Type.String({ description: "The error in that message; at most 2,000 characters." }));

/** The tracked life of one prompt. */
export const Prompt = Type.Object(
  {
    promptId: PromptId,
    sessionId: SessionId,
    state: PromptState,
    text: Type.String({
      description:
        "Its first 1,000 characters. `prompt/get` returns the complete text until it is inserted, handled or withdrawn.",
    }),
    length: Type.Integer({ minimum: 0, description: "Characters of the complete text." }),
    disposition: Type.Optional(Disposition),
    runId: Type.Optional({ ...RunId, description: "The run that it started or joined." }),
    entryId: Type.Optional(Type.String({ description: "The id of pi's entry with the prompt, if it was found." })),
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
    state: Type.Optional({ ...PromptState, description: "Present with `wait`, and for a repeated `promptId`." }),
    outcome: Type.Optional({ ...RunOutcome, description: "With `wait`: how the run ended." }),
    stopReason,
    error,
    text: Type.Optional(
      Type.String({
        description:
          "With `wait`: the text of the run's last assistant message, at most 64 KiB of it. Absent if it is no longer known; the transcript has it.",
      }),
    ),
    textTruncated: Type.Optional(Type.Boolean({ description: "The text was longer." })),
    warnings: Type.Optional(
      Type.Array(Type.Enum(["duplicate_prompt"]), {
        maxItems: 1,
        description:
          "`duplicate_prompt`: the session's context ends with the same unanswered text, so the model reads it twice.",
      }),
    ),
  },
  { additionalProperties: false },
);
export type PromptResult = Static<typeof PromptResult>;

const told = { sessionId: SessionId, seq: Seq, at: Timestamp, by: Type.Optional(By) };
const promptIds = Type.Array(PromptId, { maxItems: 256, description: "The newest prompts that are part of it." });

export const PromptUpdated = Type.Object({ ...told, prompt: Prompt }, { additionalProperties: false });

export const RunStarted = Type.Object({ ...told, runId: RunId, promptIds }, { additionalProperties: false });

export const RunEnded = Type.Object(
  { ...told, runId: RunId, outcome: RunOutcome, stopReason, error, promptIds, startedAt: Timestamp },
  { additionalProperties: false },
);
