import { isDeepStrictEqual } from "node:util";
import { WireError } from "../../protocol/errors.ts";
import type { McpServer } from "../../protocol/mcp-servers.ts";

/** Of all servers of a session, as JSON. The helper's configuration has room for them. */
const maxMcpServersBytes = 128 * 1024;

/** Keeps the MCP servers of a session in a private field, so that no log and no JSON can contain their secrets. */
export class ChildMcpServers {
  static readonly none: ChildMcpServers = new ChildMcpServers([]);
  readonly names: readonly string[];
  readonly #servers: readonly McpServer[];

  /** Throws `invalid_params` above 128 KiB, for two servers with one name, and for an unusable URL. */
  constructor(given: readonly McpServer[]) {
    requireSound(given);
    this.#servers = given.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    this.names = this.#servers.map(({ name }) => name);
  }

  get servers(): readonly McpServer[] {
    return this.#servers;
  }

  get isEmpty(): boolean {
    return this.#servers.length === 0;
  }

  isSame(other: ChildMcpServers): boolean {
    return isDeepStrictEqual(this.#servers, other.#servers);
  }
}

/** What the schema cannot check. Values are not echoed. */
function requireSound(given: readonly McpServer[]): void {
  if (Buffer.byteLength(JSON.stringify(given)) > maxMcpServersBytes)
    throw invalid("", `have more than ${maxMcpServersBytes} bytes`);
  // pi makes one name of both, and refuses the second.
  const spaces = new Set<string>();
  for (const [at, server] of given.entries()) {
    const space = server.name.replaceAll("-", "_");
    if (spaces.has(space)) throw invalid(`/${at}/name`, `have the name ${server.name} twice`);
    spaces.add(space);
    if ("url" in server && !URL.canParse(server.url)) throw invalid(`/${at}/url`, "have an invalid URL");
  }
}

function invalid(path: string, message: string): WireError {
  return new WireError("invalid_params", `The MCP servers ${message}.`, {
    findings: [{ path: `/mcpServers${path}`, message }],
  });
}
