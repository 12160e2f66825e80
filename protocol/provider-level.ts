/** How much a subscriber wants to hear of the requests to the provider, from nothing to all. Each has the ones before. */
export const providerLevels = ["off", "summary", "messages", "payload"] as const;
export type ProviderLevel = (typeof providerLevels)[number];

/** Whether a level has what another one has. */
export function covers(level: ProviderLevel, wanted: ProviderLevel): boolean {
  return providerLevels.indexOf(level) >= providerLevels.indexOf(wanted);
}

/** The highest of some levels; `off` without any. */
export function highestLevel(levels: Iterable<ProviderLevel>): ProviderLevel {
  let highest: ProviderLevel = "off";
  for (const level of levels) if (covers(level, highest)) highest = level;
  return highest;
}
