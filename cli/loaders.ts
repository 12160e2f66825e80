import type { Command, CommandName } from "./invocation.ts";

type Loaders = { readonly [N in Exclude<CommandName, "help">]: () => Promise<Command<N>> };

/** Each command is loaded when it is called, so that no command loads the dependencies of another. */
export const loaders: Loaders = {
  start: async () => (await import("./start.ts")).start,
  config: async () => (await import("./config.ts")).config,
  stop: async () => (await import("./stop.ts")).stop,
  status: async () => (await import("./status.ts")).status,
  ls: async () => (await import("./ls.ts")).ls,
  new: async () => (await import("./new.ts")).newSession,
  prompt: async () => (await import("./prompt.ts")).prompt,
  attach: async () => (await import("./attach.ts")).attach,
  tail: async () => (await import("./tail.ts")).tail,
  push: async () => (await import("./push.ts")).push,
  deliveries: async () => (await import("./deliveries.ts")).deliveries,
  delivery: async () => (await import("./delivery.ts")).delivery,
  open: async () => (await import("./open.ts")).open,
  fork: async () => (await import("./fork.ts")).fork,
  hibernate: async () => (await import("./hibernate.ts")).hibernate,
  close: async () => (await import("./close.ts")).close,
  rm: async () => (await import("./rm.ts")).rm,
  cost: async () => (await import("./cost.ts")).cost,
  context: async () => (await import("./context.ts")).context,
  dialogs: async () => (await import("./dialogs.ts")).dialogs,
  dialog: async () => (await import("./dialog.ts")).dialog,
  connect: async () => (await import("./connect.ts")).connect,
  doctor: async () => (await import("./doctor.ts")).doctor,
  service: async () => (await import("./service.ts")).service,
  token: async () => (await import("./token.ts")).token,
  logs: async () => (await import("./logs.ts")).logs,
  docs: async () => (await import("./docs.ts")).docs,
  completion: async () => (await import("./completion.ts")).completion,
  demo: async () => (await import("./demo.ts")).demo,
};
