import { chmod, lstat, rm } from "node:fs/promises";
import type { Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { StartError } from "../lib/start-error.ts";

const loopback = "127.0.0.1";

/** Listens on loopback TCP. Port 0 lets the system choose. Resolves with the port. */
export async function listenTcp(server: Server, port: number): Promise<number> {
  try {
    await listening(server, { host: loopback, port });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "EADDRINUSE") {
      throw new StartError(
        "port_in_use",
        `Port ${port} on ${loopback} is in use. Choose another with --port, or none to let the system choose.`,
        { cause },
      );
    }
    throw new StartError("address_unavailable", `The daemon cannot listen on ${loopback}:${port} (${code}).`, {
      cause,
    });
  }
  return (server.address() as AddressInfo).port;
}

/**
 * Listens on a Unix socket that its user alone may use. What a killed daemon has left at the path is removed; a live
 * socket, or a file that is no socket, never is.
 */
export async function listenUnix(server: Server, path: string): Promise<void> {
  await removeStale(path);
  try {
    // Until the mode is set, the directory (0700) keeps others out.
    await listening(server, { path });
    await chmod(path, 0o600);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new StartError("address_unavailable", `The daemon cannot listen on ${path} (${code}).`, { cause });
  }
}

async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return;
  if (!found.isSocket()) {
    throw new StartError(
      "address_unavailable",
      `${path} is in the way of the daemon's socket, and is not a socket. Move it away.`,
    );
  }
  if (await answers(path)) {
    throw new StartError("daemon_already_running", `Another process listens on ${path}. Stop it with: pi-rpcd stop`);
  }
  await rm(path, { force: true });
}

/** Only a refusal proves that nobody listens: a socket that is busy, or another user's, fails in other ways. */
function answers(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(path);
  socket.once("connect", () => resolve(true));
  socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code !== "ECONNREFUSED" && code !== "ENOENT"));
  return promise.finally(() => socket.destroy());
}

function listening(server: Server, where: { host: string; port: number } | { path: string }): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(where, () => {
    server.off("error", reject);
    resolve();
  });
  return promise;
}
