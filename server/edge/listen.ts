import { randomBytes } from "node:crypto";
import { chmod, link, lstat, rename, unlink } from "node:fs/promises";
import type { Server } from "node:http";
import { type AddressInfo, connect, type ListenOptions } from "node:net";
import { dirname, join } from "node:path";
import { StartError } from "../lib/start-error.ts";
import { inheritedSocket, requireOwnSocket } from "./inherited-socket.ts";

const loopback = "127.0.0.1";

/** A socket file that this process created. */
export interface SocketFile {
  /** Removes the file, unless another process has replaced it. */
  remove(): Promise<void>;
}

/** Listens on TCP and resolves with the port. Port 0 lets the system choose. */
export async function listenTcp(server: Server, port: number, host = loopback): Promise<number> {
  try {
    await listening(server, { host, port });
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "EADDRINUSE") {
      throw new StartError(
        "port_in_use",
        `Port ${port} on ${host} is in use. Choose another with ${host === loopback ? "--port" : "--listen"}, or none to let the system choose.`,
        { cause },
      );
    }
    throw new StartError("address_unavailable", `The daemon cannot listen on ${host}:${port} (${code}).`, {
      cause,
    });
  }
  return (server.address() as AddressInfo).port;
}

/**
 * Listens on a Unix socket that only its user may open. The socket of a killed daemon at the path is removed; a live
 * socket, or a file that is not a socket, never is.
 *
 * The socket is created under a temporary name and then linked to its path: it is private before another process can
 * find it, a race cannot replace a live socket, and Node, which removes the name that it bound even if another process
 * owns it by then, removes no other file. If systemd passed a socket at this path, that socket is used instead.
 */
export async function listenUnix(server: Server, path: string): Promise<SocketFile> {
  const inherited = inheritedSocket();
  if (inherited !== undefined) {
    requireOwnSocket(inherited, path);
    await listening(server, { fd: inherited });
    // systemd owns it and keeps it for the next start.
    return { remove: async () => {} };
  }
  await removeStale(path);
  // A short name, because the system limits the length of a socket's path.
  const own = join(dirname(path), `.${randomBytes(3).toString("hex")}`);
  try {
    await listeningPrivately(server, own);
    await chmod(own, 0o600);
    const { dev, ino } = await lstat(own);
    await publish(own, path);
    const remove = async (): Promise<void> => {
      const found = await lstat(path).catch(() => undefined);
      if (found?.dev === dev && found.ino === ino) await unlink(path).catch(() => {});
    };
    return { remove };
  } catch (cause) {
    if (cause instanceof StartError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    throw new StartError("address_unavailable", `The daemon cannot listen on ${path} (${code}).`, { cause });
  }
}

async function publish(own: string, path: string): Promise<void> {
  try {
    await link(own, path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "EEXIST") throw alreadyRunning(path);
    // The file system has no links.
    await rename(own, path);
    return;
  }
  await unlink(own);
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
  if (await answers(path)) throw alreadyRunning(path);
  await unlink(path).catch(() => {});
}

function alreadyRunning(path: string): StartError {
  return new StartError("daemon_already_running", `Another process listens on ${path}. Stop it with: pi-rpcd stop`);
}

/** Only a refused connection proves that no process listens; other failures (a full queue, no permission) may be a live one. */
function answers(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(path);
  socket.once("connect", () => resolve(true));
  socket.once("error", ({ code }: NodeJS.ErrnoException) => resolve(code !== "ECONNREFUSED" && code !== "ENOENT"));
  return promise.finally(() => socket.destroy());
}

/** The mask applies to the whole process, so it is set only while `listen` binds, which happens before it returns. */
function listeningPrivately(server: Server, path: string): Promise<void> {
  const umask = process.umask(0o177);
  try {
    return listening(server, { path });
  } finally {
    process.umask(umask);
  }
}

function listening(server: Server, where: ListenOptions | { readonly fd: number }): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject);
  server.listen(where, () => {
    server.off("error", reject);
    resolve();
  });
  return promise;
}
