/** What `daemon.json` in the state directory says. The file is 0600 and is removed when the daemon ends. */
export interface DaemonFile {
  readonly pid: number;
  readonly version: string;
  /** The protocol version of the daemon. */
  readonly protocol: number;
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  readonly socketPath: string;
  /** `https://<address>:<port>`, where the daemon listens with TLS beyond loopback. */
  readonly tlsUrl?: string;
  /** From when until when its certificate is valid: milliseconds since 1970. */
  readonly tlsNotBefore?: number;
  readonly tlsNotAfter?: number;
  readonly token: string;
}

/** What is wrong with the certificate's time, as a sentence; undefined where nothing is. Clients refuse such a certificate. */
export function certificateProblem(
  { tlsUrl, tlsNotBefore, tlsNotAfter }: Pick<DaemonFile, "tlsUrl" | "tlsNotBefore" | "tlsNotAfter">,
  now = Date.now(),
): string | undefined {
  if (tlsUrl === undefined) return undefined;
  if (tlsNotAfter !== undefined && tlsNotAfter < now)
    return `The certificate of ${tlsUrl} expired on ${dateOf(tlsNotAfter)}. Renew it and restart the daemon.`;
  if (tlsNotBefore !== undefined && tlsNotBefore > now)
    return `The certificate of ${tlsUrl} is not valid before ${dateOf(tlsNotBefore)}.`;
  return undefined;
}

function dateOf(at: number): string {
  return new Date(at).toISOString();
}

/** Name of the {@link DaemonFile} in the state directory. */
export const DAEMON_FILE_NAME = "daemon.json";
