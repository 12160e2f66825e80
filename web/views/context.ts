import { createContext } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import type { App, Workspace } from "../state/app.ts";
import { createLooks, type Looks, type Offer } from "./place.ts";

interface PageContext {
  readonly app: App;
  readonly looks: Looks;
}

export const Context = createContext<PageContext | undefined>(undefined);

export function usePage(): PageContext {
  const context = useContext(Context);
  if (context === undefined) throw new Error("There is no page around this view.");
  return context;
}

/** For views that are only built once there is a workspace. */
export function useWorkspace(): Workspace {
  const workspace = usePage().app.workspace.value;
  if (workspace === undefined) throw new Error("There is no workspace yet.");
  return workspace;
}

export function createPage(app: App): PageContext {
  const looks = createLooks();
  app.hasLetterKeys.subscribe((has) => {
    looks.letterKeys.value = has;
  });
  return { app, looks };
}

/** Puts what a menu or field offers into the list of all actions, while it is shown. */
export function useOffer(offer: Offer): void {
  const { offers } = usePage().looks;
  const newest = useRef(offer);
  newest.current = offer;
  useEffect(() => {
    const read = (): Offer => newest.current;
    offers.add(read);
    return () => void offers.delete(read);
  }, []);
}
