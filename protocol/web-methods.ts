import { Timestamp } from "./ids.ts";
import { Type } from "./json-schema.ts";
import type { MethodRow } from "./method-row.ts";
import { empty, params } from "./params.ts";

const http = { none: "it is about a browser on the user's own machine" } as const;

/** Rows of the method table about the web console. */
export const webMethods = {
  "web/open": {
    summary:
      "Opens the web console: listens for it, if it does not yet, and returns a code that a browser exchanges for a token of its own. The token has `observe` and `prompt`, never `admin`.",
    params: params({
      readOnly: Type.Optional(
        Type.Boolean({ default: false, description: "The token gets `observe` alone. Not with `bash`." }),
      ),
      payload: Type.Optional(Type.Boolean({ default: false, description: "The token also gets `payload`." })),
      bash: Type.Optional(Type.Boolean({ default: false, description: "The token also gets `bash`." })),
      port: Type.Optional(
        Type.Integer({
          minimum: 1,
          maximum: 65_535,
          description:
            "The port on 127.0.0.1. Default: the present one, or one that the system chooses. A browser gives what it keeps for a page, such as service workers, to every later program at the same port.",
        }),
      ),
      print: Type.Optional(
        Type.Boolean({
          default: false,
          description: "A person copies the address: the code is valid for 10 minutes instead of one.",
        }),
      ),
    }),
    result: Type.Object(
      {
        url: Type.String({
          pattern: "^http://127\\.0\\.0\\.1(?::[0-9]{1,5})?/$",
          description: "The console's address, without the code. Only this spelling is served: `localhost` is refused.",
        }),
        port: Type.Integer({ minimum: 1, maximum: 65_535 }),
        code: Type.String({
          pattern: "^[A-Za-z0-9_-]{43}$",
          description: "Secret, for one use: a browser opens `url`, followed by `#` and the code.",
        }),
        tokenName: Type.String({
          pattern: "^web-[0-9]{1,9}$",
          description: "The name of the browser's token, which `token/list` has once the code was used.",
        }),
        expiresAt: { ...Timestamp, description: "When the code becomes invalid, in Unix milliseconds." },
      },
      { additionalProperties: false },
    ),
    http,
    scope: "none",
    capability: "admin",
    isLocal: true,
    since: "0.1.0",
    errors: ["web_not_built", "port_unavailable", "conflict", "overloaded"],
    // A repeated call would leave a code that nobody uses.
    retry: "never",
  },
  "web/close": {
    summary:
      "Closes the web console: its codes and tokens end, its connections are closed, and its port listens no more.",
    params: empty,
    result: Type.Object(
      { wasOpen: Type.Boolean({ description: "Whether it listened." }) },
      { additionalProperties: false },
    ),
    http,
    scope: "none",
    capability: "admin",
    isLocal: true,
    since: "0.1.0",
    errors: [],
    retry: "never",
  },
} as const satisfies Readonly<Record<string, MethodRow>>;
