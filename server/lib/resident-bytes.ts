import { keptFor } from "./kept-for.ts";

/** The memory of this process. Cached, because each query opens a file. */
export const residentBytes = keptFor(1_000, () => process.memoryUsage.rss());

// Files may be used up by the first query of a client.
residentBytes();
