/** How long a test waits for a condition: only one that hangs takes so long, also on a loaded machine. */
export const patience = { timeout: 200_000 };
