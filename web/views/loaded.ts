import { signal } from "@preact/signals";

export type Places = typeof import("./places.tsx")["places"];

/** What `later.tsx` loads. Undefined until it was needed and is there. */
export const loadedPlaces = signal<Places | undefined>(undefined);
