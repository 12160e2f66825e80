/** What `daemon.json` in the state directory says. The file is 0600 and is removed when the daemon ends. */
export interface DaemonFile {
  readonly pid: number;
  readonly version: string;
  /** The protocol version of the daemon. */
  readonly protocol: number;
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  readonly socketPath: string;
  readonly token: string;
}

/** Name of the {@link DaemonFile} in the state directory. */
export const DAEMON_FILE_NAME = "daemon.json";
