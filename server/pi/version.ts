export type Version = readonly [major: number, minor: number, patch: number];

/** The first `x.y.z` of a text. */
export function parseVersion(text: string): Version | undefined {
  const match = /(\d+)\.(\d+)\.(\d+)/.exec(text);
  return match === null ? undefined : [Number(match[1]), Number(match[2]), Number(match[3])];
}

export function isAtLeast(version: Version, floor: Version): boolean {
  for (let i = 0; i < 3; i += 1) {
    const difference = (version[i] as number) - (floor[i] as number);
    if (difference !== 0) return difference > 0;
  }
  return true;
}
