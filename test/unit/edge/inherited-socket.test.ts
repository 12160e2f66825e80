import { once } from "node:events";
import { chmodSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { requireOwnSocket } from "../../../server/edge/inherited-socket.ts";

/** A server that listens in a directory of its own. */
async function listening(where?: (directory: string) => string) {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "inherited-")));
  const server: Server = createServer();
  const path = where?.(directory);
  await once(path === undefined ? server.listen(0, "127.0.0.1") : server.listen(path), "listening");
  if (path !== undefined) chmodSync(path, 0o600);
  const { fd } = (server as unknown as { readonly _handle: { readonly fd: number } })._handle;
  return {
    fd,
    directory,
    [Symbol.asyncDispose]: async () => {
      await new Promise((resolve) => server.close(resolve));
      rmSync(directory, { recursive: true });
    },
  };
}

const unsafe = (why: RegExp) => expect.objectContaining({ kind: "listen_unsafe", message: expect.stringMatching(why) });

function refusal(descriptor: number, path: string): unknown {
  try {
    requireOwnSocket(descriptor, path);
    return undefined;
  } catch (error) {
    return error;
  }
}

describe("a socket that a service manager hands over", () => {
  it("is used if it is the daemon's own, also by another name of its directory", async () => {
    await using at = await listening((directory) => join(directory, "daemon.sock"));
    symlinkSync(at.directory, join(at.directory, "link"));
    expect(refusal(at.fd, join(at.directory, "daemon.sock"))).toBeUndefined();
    expect(refusal(at.fd, join(at.directory, "link", "daemon.sock"))).toBeUndefined();
  });

  it("is refused on a port", async () => {
    await using at = await listening();
    expect(refusal(at.fd, join(at.directory, "daemon.sock"))).toEqual(unsafe(/is not a Unix socket/));
  });

  it("is refused at another path, and if there is no descriptor", async () => {
    await using at = await listening((directory) => join(directory, "another.sock"));
    expect(refusal(at.fd, join(at.directory, "daemon.sock"))).toEqual(unsafe(/is at .*another\.sock/));
    expect(refusal(1_000_000, join(at.directory, "daemon.sock"))).toEqual(unsafe(/is not a Unix socket/));
  });

  it("is refused if other users may connect", async () => {
    await using at = await listening((directory) => join(directory, "daemon.sock"));
    chmodSync(join(at.directory, "daemon.sock"), 0o666);
    expect(refusal(at.fd, join(at.directory, "daemon.sock"))).toEqual(unsafe(/has the mode 0666/));
  });
});
