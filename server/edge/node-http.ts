import type * as http from "node:http";
import type * as https from "node:https";

/**
 * The functions of node:http that the edge uses. An `import` of the module reads all of its exports, one of which loads
 * an HTTP client: 12 MiB of memory and 40 ms at start (measured on Node 24) for nothing.
 */
export const { createServer, STATUS_CODES }: Pick<typeof http, "createServer" | "STATUS_CODES"> =
  process.getBuiltinModule("node:http");

/** Loads node:https at the first call, because only a daemon that listens beyond loopback needs it. */
export function createTlsServer(...options: Parameters<typeof https.createServer>): https.Server {
  return process.getBuiltinModule("node:https").createServer(...options);
}
