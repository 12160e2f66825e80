import type { McpServer } from "@agentclientprotocol/sdk";
import type { Params as WireParams } from "../protocol/methods.ts";
import { AcpError } from "./acp-error.ts";

export type WireServers = NonNullable<WireParams<"session/create">["mcpServers"]>;

/** A client's MCP servers as the daemon takes them. Throws {@link AcpError} for a transport that pi does not have. */
export function mcpServersOf(servers: readonly McpServer[]): WireServers {
  const taken = new Set<string>();
  return servers.map((server) => {
    const name = freeName(server.name, taken);
    if ("command" in server) {
      const { command, args, env } = server;
      return { name, command, args: [...args], env: valuesOf(env) };
    }
    if (server.type === "sse") throw new AcpError("invalidParams", `pi has no SSE for the MCP server ${name}.`);
    return { name, url: server.url, headers: valuesOf(server.headers) };
  });
}

/** pi's names have fewer characters, and are equal if they differ in `-` and `_` alone. */
function freeName(given: string, taken: Set<string>): string {
  const base = given.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, 60) || "server";
  for (let count = 1; ; count += 1) {
    const name = count === 1 ? base : `${base}_${count}`;
    const key = name.replaceAll("-", "_");
    if (taken.has(key)) continue;
    taken.add(key);
    return name;
  }
}

function valuesOf(pairs: readonly { readonly name: string; readonly value: string }[]): Record<string, string> {
  return Object.fromEntries(pairs.map(({ name, value }) => [name, value]));
}
