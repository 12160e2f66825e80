import { constants, fstatSync, openSync } from "node:fs";
import { Socket } from "node:net";

/** Node's handle of a TCP connection, which no public function returns for a pipe. */
interface Handle {
  open(fd: number): number;
}

interface TcpWrap {
  readonly TCP: new (type: number) => Handle;
  readonly constants: { readonly SOCKET: number };
}

/**
 * Ends this process when the reader of stdout has gone (`pi-rpcd tail last | head -20`), for commands that print
 * nothing for a long time: a write reports it only afterwards. The system reports it at once to a program that waits
 * for input from the pipe. Node waits in this way for connections, but not for a pipe that is only open for writing, so
 * this uses the handle of a connection. Where this is not possible (outside Linux), the next write ends this process.
 */
export function endWithReader(): void {
  if (!fstatSync(process.stdout.fd).isFIFO()) return;
  try {
    const { TCP, constants: types } = (process as unknown as { binding(name: "tcp_wrap"): TcpWrap }).binding(
      "tcp_wrap",
    );
    const handle = new TCP(types.SOCKET);
    // A file description of its own: that of stdout must stay in blocking mode. A named pipe without a reader throws.
    if (handle.open(openSync("/proc/self/fd/1", constants.O_WRONLY | constants.O_NONBLOCK)) !== 0) return;
    const options: object = { handle, readable: true };
    const socket = new Socket(options);
    socket.on("error", () => process.exit());
    socket.resume().unref();
  } catch {
    // The next write ends this process.
  }
}
