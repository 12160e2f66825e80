import type { Static } from "typebox";
import { capabilities } from "./capability.ts";
import { Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { empty, params } from "./params.ts";
import { Labels } from "./session-options.ts";

/** The name of the token in `daemon.json`. It allows everything, can be rotated and never be revoked. */
export const MAIN_TOKEN = "main";

const TokenName = Type.String({
  pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$",
  description: "`main` is the token in `daemon.json`.",
});

const parts = {
  capabilities: Type.Array(Type.Enum([...capabilities]), {
    minItems: 1,
    maxItems: capabilities.length,
    uniqueItems: true,
    description: "Its capabilities: `admin` allows everything, the others only what they name.",
  }),
  labels: Type.Optional({
    ...Labels,
    minProperties: 1,
    description: "Only sessions with all of these labels. Sessions that are created with it get them.",
  }),
  cwds: Type.Optional(
    Type.Array(Type.String({ pattern: "^/[^\\u0000]{0,4095}$" }), {
      minItems: 1,
      maxItems: 64,
      description: "Only sessions whose directory is one of these, or lies below one.",
    }),
  ),
};

/** A token without its secret, which only its holder has. */
export const TokenInfo = Type.Object(
  {
    name: TokenName,
    ...parts,
    createdAt: Timestamp,
    rotatedAt: Type.Optional(Timestamp),
    lastUsedAt: Type.Optional({ ...Timestamp, description: "Since the daemon started." }),
  },
  { additionalProperties: false },
);
export type TokenInfo = Static<typeof TokenInfo>;

/** A token with its secret, which is told this once. */
const NewToken = Type.Object(
  {
    ...TokenInfo.properties,
    token: Type.String({ description: "The secret. It is told this once, and kept as a hash." }),
  },
  { additionalProperties: false },
);

const tokenName = params({ name: TokenName });
// A second call would act again, or fail because the first one acted.
const administers = { scope: "none", capability: "admin", retry: "never", since: "0.1.0" } as const;

/** Rows of the method table about tokens. */
export const tokenMethods = {
  "token/create": {
    summary: "Makes a token that allows some of what the daemon's own does, if asked only with some of the sessions.",
    params: params({ name: TokenName, ...parts }),
    result: NewToken,
    http: { verb: "POST", path: "/v1/tokens" },
    ...administers,
    errors: ["conflict", "overloaded"],
  },
  "token/list": {
    summary: "All tokens, without their secrets.",
    params: empty,
    result: Type.Object({ tokens: Type.Array(TokenInfo) }, { additionalProperties: false }),
    http: { verb: "GET", path: "/v1/tokens" },
    ...administers,
    reads: true,
    retry: "safe",
    errors: [],
  },
  "token/rotate": {
    summary:
      "Replaces the secret of a token. The old one is refused from the next request on, and its connections are closed after the result.",
    params: tokenName,
    result: NewToken,
    http: { verb: "POST", path: "/v1/tokens/{name}/rotate" },
    ...administers,
    errors: ["token_not_found"],
    endsToken: "name",
  },
  "token/revoke": {
    summary: "Ends a token: it is refused from the next request on, and its connections are closed. Not for `main`.",
    params: tokenName,
    result: empty,
    http: { verb: "DELETE", path: "/v1/tokens/{name}" },
    ...administers,
    errors: ["token_not_found", "forbidden"],
    endsToken: "name",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
