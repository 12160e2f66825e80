/** Content of `daemon.json` in the state directory. The file has mode 0600 and is removed when the daemon ends. */
export interface DaemonFile {
  readonly pid: number;
  readonly version: string;
  /** The protocol version of the daemon. */
  readonly protocol: number;
  /** `http://127.0.0.1:<port>`. */
  readonly url: string;
  readonly socketPath: string;
  /** `https://<address>:<port>`, if the daemon listens with TLS beyond loopback. */
  readonly tlsUrl?: string;
  /** Validity of its certificate, in Unix milliseconds. */
  readonly tlsNotBefore?: number;
  readonly tlsNotAfter?: number;
  readonly token: string;
}

/** Returns why the certificate is not valid now, as a sentence, or `undefined`. Clients refuse such a certificate. */
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
