import { PROTOCOL_VERSION } from "../protocol/wire.ts";
import { packageVersion } from "./version.ts";

/** The daemon's version and capabilities. */
export interface Versions {
  readonly version: string;
  readonly protocol: number;
}

/** How a running daemon differs from this command line, for people; undefined if it does not. */
export function skewOf(own: string, { version, protocol }: Versions): string | undefined {
  if (protocol !== PROTOCOL_VERSION) {
    return `it speaks version ${protocol} of the protocol, this command line version ${PROTOCOL_VERSION}`;
  }
  const order = compare(own, version);
  if (order === 0) return undefined;
  return `it is ${order > 0 ? "older" : "newer"} than this command line (${own})`;
}

/** The note about a daemon that is older than this command line; undefined if it is not. */
export function olderDaemon({ version }: Versions, own: string = packageVersion()): string | undefined {
  if (compare(own, version) <= 0) return undefined;
  return `the running daemon is pi-rpcd ${version}, older than this command line (${own}); restart it with: pi-rpcd start --restart`;
}

/** Greater than 0 if `left` is newer; a version with `-` is older than the same one without. */
function compare(left: string, right: string): number {
  const [leftNumbers, leftRest] = parts(left);
  const [rightNumbers, rightRest] = parts(right);
  for (let i = 0; i < 3; i += 1) {
    const difference = (leftNumbers[i] ?? 0) - (rightNumbers[i] ?? 0);
    if (difference !== 0) return difference;
  }
  if (leftRest === rightRest) return 0;
  if (leftRest === "") return 1;
  if (rightRest === "") return -1;
  return leftRest < rightRest ? -1 : 1;
}

function parts(version: string): readonly [numbers: readonly number[], rest: string] {
  const [numbers = "", rest = ""] = version.split(/-(.*)/s);
  return [numbers.split(".").map((number) => Number.parseInt(number, 10) || 0), rest];
}
