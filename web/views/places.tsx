import { DaemonView } from "./daemon.tsx";
import { Keys } from "./keys.tsx";
import { NewSessionForm } from "./new-session.tsx";
import { PushesView } from "./pushes.tsx";
import { StoredSessionsList } from "./stored-sessions.tsx";

/** What is not needed at first. The build makes a file of its own of it, which `later.tsx` loads. */
export const places = { DaemonView, Keys, NewSessionForm, PushesView, StoredSessionsList } as const;
