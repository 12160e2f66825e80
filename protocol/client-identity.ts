import type { Static } from "typebox";
import { Type } from "./json-schema.ts";

/** A client's own id, which identifies it across connections. */
export const ClientId = Type.String({
  pattern: "^[0-9A-Za-z][0-9A-Za-z._:-]{7,127}$",
  description:
    "Chosen by the client (8 to 128 letters, digits and . _ : -), otherwise the daemon's id of its connection.",
});

/** Display name of a client, never an identity. */
export const ClientName = Type.String({
  pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]{1,64}$",
  description: "Display name that the client chose. It is not verified.",
});

/** The client that caused a change. */
export const By = Type.Object(
  { clientId: ClientId, name: Type.Optional(ClientName) },
  {
    additionalProperties: false,
    description: "The client whose call caused it. Absent if no client did, or it is unknown.",
  },
);
export type By = Static<typeof By>;
