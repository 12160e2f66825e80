import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { createSecureContext } from "node:tls";
import { StartError } from "../lib/start-error.ts";

export interface TlsSettings {
  /** An address beyond loopback, with a port: `192.168.1.5:8443`, `[::]:8443`. */
  readonly listen?: string | undefined;
  /** Files in PEM. */
  readonly tlsCert?: string | undefined;
  readonly tlsKey?: string | undefined;
}

/** An address beyond loopback with its certificate. */
export interface TlsListener {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly cert: string;
  readonly key: string;
  /** The validity of the certificate, in milliseconds since 1970. */
  readonly notBefore: number;
  readonly notAfter: number;
}

/**
 * The ciphers that TLS may negotiate. All have forward secrecy, so that the certificate's key cannot decrypt recorded
 * traffic, and authenticated encryption.
 */
export const tlsCiphers = [
  ...["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"],
  ...["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"],
  ...["ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305"],
  ...["ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"],
].join(":");

/**
 * Returns the listener beyond loopback; undefined if none is configured. Throws a {@link StartError}: `listen_unsafe` if
 * the certificate or its key is missing, `tls_unusable` if they cannot be used, `config_invalid` for a wrong address.
 */
export function tlsListener({ listen, tlsCert, tlsKey }: TlsSettings): TlsListener | undefined {
  if (listen === undefined) {
    if (tlsCert === undefined && tlsKey === undefined) return undefined;
    throw new StartError("config_invalid", "tlsCert and tlsKey are set, but listen is not.");
  }
  const address = addressOf(listen);
  if (tlsCert === undefined || tlsKey === undefined) {
    const missing = tlsCert === undefined ? "tlsCert (--tls-cert)" : "tlsKey (--tls-key)";
    throw new StartError(
      "listen_unsafe",
      `The daemon does not listen at ${listen} without TLS: the token would cross the network unencrypted, and it allows ` +
        `running commands on this machine. Set ${missing}, or omit listen and reach the Unix socket by ssh.`,
    );
  }
  const [cert, key] = [textOf(tlsCert, "certificate"), textOf(tlsKey, "key")];
  try {
    const certificate = new X509Certificate(cert);
    // A context accepts empty files, and a key of another type than the certificate's.
    if (!certificate.checkPrivateKey(createPrivateKey(key))) throw new Error("they do not belong together");
    createSecureContext({ cert, key });
    const { validFrom, validTo } = certificate;
    return { ...address, cert, key, notBefore: Date.parse(validFrom), notAfter: Date.parse(validTo) };
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new StartError("tls_unusable", `The certificate ${tlsCert} and the key ${tlsKey} cannot be used: ${why}.`, {
      cause,
    });
  }
}

/** Returns the values of `Host` that name the listener's own address: none for an address that means all addresses. */
export function ownHosts(host: string, port: number): readonly string[] {
  if (host === "0.0.0.0" || /^[0:.]+$/.test(host)) return [];
  const name = isIP(host) === 6 ? `[${host.toLowerCase()}]` : host;
  return port === 443 ? [name, `${name}:443`] : [`${name}:${port}`];
}

/** Returns the URL of an address. */
export function tlsUrl(host: string, port: number): string {
  return `https://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

function addressOf(listen: string): { readonly host: string; readonly port: number } {
  const [, six, other, port = ""] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:]+)):(\d{1,5})$/.exec(listen) ?? [];
  const host = six ?? other ?? "";
  if (isIP(host) === (six === undefined ? 4 : 6) && Number(port) <= 65_535) return { host, port: Number(port) };
  throw new StartError(
    "config_invalid",
    `listen (--listen) takes an address and a port, such as 192.168.1.5:8443 or [::]:8443, not "${listen}".`,
  );
}

function textOf(path: string, what: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const { code = "unknown" } = cause as NodeJS.ErrnoException;
    throw new StartError("tls_unusable", `The ${what} ${path} cannot be read (${code}).`, { cause });
  }
}
