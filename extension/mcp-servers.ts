import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { McpServer } from "../protocol/mcp-servers.ts";
import { messageOf } from "./pi-types.ts";

/** Of pi 1.0.3 and later. */
interface McpApi {
  registerMcpServer?(name: string, config: object): void;
}

/**
 * Registers MCP servers in pi, which connects them when its session starts. Must be called while pi loads the extension. A
 * server that pi refuses is left out, and the user is notified.
 */
export function registerMcpServers(pi: ExtensionAPI, servers: readonly McpServer[]): void {
  const refused: string[] = [];
  for (const { name, ...config } of servers) {
    try {
      const api = pi as McpApi;
      if (api.registerMcpServer === undefined) throw new Error("this pi takes no MCP servers");
      api.registerMcpServer(name, literal(config));
    } catch (thrown) {
      refused.push(`${name}: ${messageOf(thrown)}`);
    }
  }
  if (refused.length === 0) return;
  pi.on("session_start", (_event, { ui }) => {
    for (const text of refused.splice(0)) ui.notify(`pi-rpcd: pi refuses the MCP server ${text}`, "warning");
  });
}

type Config = Readonly<Record<string, unknown>> & {
  readonly env?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
};

/** pi takes `${NAME}` in these values for a variable, and a value that begins with `!` for a command. */
function literal({ env, headers, ...config }: Config): object {
  return {
    ...config,
    ...(env === undefined ? {} : { env: escaped(env) }),
    ...(headers === undefined ? {} : { headers: escaped(headers) }),
  };
}

function escaped(values: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, value.replaceAll("$", "$$$$").replace(/^!/, "$$!")]),
  );
}
