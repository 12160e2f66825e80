/** A number in at most five characters: `12.3k`, `4.5M`. */
export function shortCount(value: number): string {
  if (value < 1_000) return String(Math.round(value));
  return value < 1_000_000 ? `${(value / 1_000).toFixed(1)}k` : `${(value / 1_000_000).toFixed(1)}M`;
}

/** A duration in seconds. Clocks can be set back, so a negative one counts as 0. */
export function inSeconds(ms: number, digits = 1): string {
  return `${(Math.max(0, ms) / 1_000).toFixed(digits)} s`;
}

/** A duration in its two largest units. */
export function duration(ms: number): string {
  const whole = Math.max(0, Math.floor(ms / 1_000));
  if (whole < 60) return `${whole} s`;
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

export function mebibytes(bytes: number): string {
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/**
 * An id as tables show it and commands accept it: the end of a UUID, because UUIDs of several hours begin with the same
 * characters. Other ids are unchanged.
 */
export function shortId(id: string): string {
  return uuid.test(id) ? id.slice(-8) : id;
}

/** A directory, with `~` for the user's own. */
export function homeRelative(path: string, home = ""): string {
  return home !== "" && (path === home || path.startsWith(`${home}/`)) ? `~${path.slice(home.length)}` : path;
}
