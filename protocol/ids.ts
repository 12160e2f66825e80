import { Type } from "./json-schema.ts";

/** A session's id: the id in the header of its pi session file. */
export const SessionId = Type.String({
  pattern: "^[0-9A-Za-z]([0-9A-Za-z._-]{0,126}[0-9A-Za-z])?$",
  description: "The id in the header of the session's pi session file.",
});

/** A delivery's id: chosen by the client, otherwise a UUIDv7. */
export const DeliveryId = Type.String({
  pattern: "^[0-9A-Za-z][0-9A-Za-z._:-]{0,127}$",
  description: "Chosen by the client (letters, digits and . _ : -, the first a letter or digit), otherwise a UUIDv7.",
});

/** A prompt's id: chosen by the client, otherwise a UUIDv7. */
export const PromptId = Type.String({
  pattern: "^[0-9A-Za-z][0-9A-Za-z._-]{0,127}$",
  description: "Chosen by the client (letters, digits and . _ -, the first a letter or digit), otherwise a UUIDv7.",
});

/** Identifies a program that shows sessions. */
export const Viewer = Type.String({ pattern: "^[!-~]{1,64}$" });

export const RunId = Type.String({ description: "A UUIDv7 that the daemon assigns to each run." });

/** Unix milliseconds. */
export const Timestamp = Type.Integer({ minimum: 0, description: "Unix milliseconds." });

/** A position in a session's log: an integer that only grows. */
export const Seq = Type.Integer({ minimum: 0, description: "A position in the session's log. It only grows." });
