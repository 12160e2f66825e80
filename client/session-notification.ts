import type { NotificationParams } from "../protocol/notifications.ts";
import type { SessionEnvelope } from "./pi-events.ts";

/** A notification about one session. */
export type SessionNotification =
  | { readonly name: "session/event"; readonly params: SessionEnvelope }
  | { readonly name: "session/updated"; readonly params: NotificationParams<"session/updated"> }
  | { readonly name: "session/replaced"; readonly params: NotificationParams<"session/replaced"> }
  | { readonly name: "session/navigated"; readonly params: NotificationParams<"session/navigated"> }
  | { readonly name: "session/labelled"; readonly params: NotificationParams<"session/labelled"> }
  | { readonly name: "session/foreignWrite"; readonly params: NotificationParams<"session/foreignWrite"> }
  | { readonly name: "session/controlChanged"; readonly params: NotificationParams<"session/controlChanged"> }
  | { readonly name: "prompt/updated"; readonly params: NotificationParams<"prompt/updated"> }
  | { readonly name: "run/started"; readonly params: NotificationParams<"run/started"> }
  | { readonly name: "run/ended"; readonly params: NotificationParams<"run/ended"> }
  | { readonly name: "dialog/opened"; readonly params: NotificationParams<"dialog/opened"> }
  | { readonly name: "dialog/updated"; readonly params: NotificationParams<"dialog/updated"> }
  | { readonly name: "dialog/unsupported"; readonly params: NotificationParams<"dialog/unsupported"> }
  | { readonly name: "dialog/resolved"; readonly params: NotificationParams<"dialog/resolved"> }
  | { readonly name: "delivery/updated"; readonly params: NotificationParams<"delivery/updated"> }
  | { readonly name: "pending/updated"; readonly params: NotificationParams<"pending/updated"> }
  | { readonly name: "context/failed"; readonly params: NotificationParams<"context/failed"> };
