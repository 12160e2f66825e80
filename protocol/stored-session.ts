import type { Static } from "typebox";
import { SessionId, Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";

/** One of pi's stored sessions that is not open in the daemon. */
export const StoredSessionInfo = Type.Object(
  {
    sessionId: SessionId,
    file: Type.String(),
    cwd: Type.String(),
    name: Type.Optional(Type.String({ description: "Its first 200 characters." })),
    firstMessage: Type.Optional(Type.String({ description: "The first 200 characters of the user's first message." })),
    bytes: Type.Integer({ minimum: 0, description: "The size of the file." }),
    createdAt: Timestamp,
    updatedAt: Timestamp,
  },
  { additionalProperties: false },
);
export type StoredSessionInfo = Static<typeof StoredSessionInfo>;
