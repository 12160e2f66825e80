/** The wire protocol of pi-rpcd: schemas, types, the method table and the error catalogue. PROTOCOL.md explains it. */
export * from "./content.ts";
export * from "./daemon.ts";
export * from "./daemon-file.ts";
export * from "./delivery.ts";
export * from "./delivery-progress.ts";
export * from "./errors.ts";
export * from "./event.ts";
export * from "./ids.ts";
export * from "./methods.ts";
export * from "./notifications.ts";
export * from "./openrpc.ts";
export * from "./pending.ts";
export * from "./provider.ts";
export * from "./session.ts";
export * from "./validation.ts";
export * from "./wire.ts";
