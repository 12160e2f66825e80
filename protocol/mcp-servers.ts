import type { Static } from "typebox";
import { Type } from "./json-schema.ts";

const closed = { additionalProperties: false } as const;
const text = (maxLength: number) => Type.String({ maxLength, pattern: "^[^\\u0000]*$" });

const common = {
  name: Type.String({
    pattern: "^[A-Za-z0-9_-]{1,64}$",
    description:
      "Names that differ only in `-` and `_` are the same. pi's `mcp.json` goes before a server of the same name.",
  }),
  exposure: Type.Optional(
    Type.Enum(["codemode", "deferred", "direct"], {
      description: "How the model reaches its tools, as `exposure` of pi's `mcp.json`. Default: `codemode`.",
    }),
  ),
};

/** A program that speaks MCP on its stdio. */
const StdioServer = Type.Object(
  {
    ...common,
    command: Type.String({
      pattern: "^[^\\u0000]{1,4096}$",
      description: "One executable. Like in `args`, pi takes a leading `~/` for the home directory.",
    }),
    args: Type.Optional(Type.Array(text(32_768), { maxItems: 256 })),
    env: Type.Optional(
      Type.Record(Type.String(), text(32_768), {
        maxProperties: 256,
        propertyNames: { pattern: "^[^=\\u0000]{1,256}$" },
        description: "In addition to those that pi gives it. The values are taken as they are.",
      }),
    ),
  },
  closed,
);

/** A server that speaks MCP over streamable HTTP. */
const HttpServer = Type.Object(
  {
    ...common,
    url: Type.String({ maxLength: 8_192, pattern: "^[Hh][Tt][Tt][Pp][Ss]?://[!-~]+$" }),
    headers: Type.Optional(
      Type.Record(
        Type.String(),
        Type.String({ maxLength: 32_768, pattern: "^[\\t\\u0020-\\u007e\\u0080-\\u00ff]*$" }),
        {
          maxProperties: 64,
          propertyNames: { pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$" },
          description: "Of each request. The values are taken as they are.",
        },
      ),
    ),
  },
  closed,
);

export const McpServer = Type.Union([StdioServer, HttpServer]);
export type McpServer = Static<typeof McpServer>;

/** MCP servers of a client, for the session's children. */
export const McpServers = Type.Array(McpServer, {
  maxItems: 32,
  description:
    "MCP servers that the session's pi connects, in addition to those of its `mcp.json`; at most 32, with 128 KiB as JSON. A server with `command` is a program that pi starts, one with `url` is reached over HTTP. The daemon keeps them in memory alone, and only their names are shown: after a restart of the daemon, the next pi has none until `session/open` gives them again. Where pi has no support of MCP (`noMcp`, or `noExtensions` without `builtin:mcp`), it reports an `extension_error` for each of them. One or more are `unsupported_by_pi` before pi 1.0.3.",
});
