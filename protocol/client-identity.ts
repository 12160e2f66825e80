import type { Static } from "typebox";
import { Type } from "./json-schema.ts";

/** A client's own id, by which the daemon knows it again over its connections. */
export const ClientId = Type.String({
  pattern: "^[0-9A-Za-z][0-9A-Za-z._:-]{7,127}$",
  description: "Chosen by the client (8 to 128 letters, digits and . _ : -), else the daemon's name of its connection.",
});

/** What a client calls itself, for people: never an identity. */
export const ClientName = Type.String({
  pattern: "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]{1,64}$",
  description: "For people: what the client calls itself. Anybody may say any name.",
});

/** Who brought something about. */
export const By = Type.Object(
  { clientId: ClientId, name: Type.Optional(ClientName) },
  { additionalProperties: false, description: "Whose call brought it about. Absent: nobody's, or it is not known." },
);
export type By = Static<typeof By>;
