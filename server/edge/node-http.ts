import type * as http from "node:http";
import type * as https from "node:https";

/**
 * What the edge uses of node:http at run time. An `import` of the module reads all of its exports, one of which loads an
 * HTTP client: 12 MiB of memory and 40 ms at start (measured on Node 24) for nothing.
 */
export const { createServer, STATUS_CODES }: Pick<typeof http, "createServer" | "STATUS_CODES"> =
  process.getBuiltinModule("node:http");

/** The same of node:https, which is loaded only where the daemon listens beyond loopback. */
export function createTlsServer(...options: Parameters<typeof https.createServer>): https.Server {
  return process.getBuiltinModule("node:https").createServer(...options);
}
