import { signal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { Figures } from "../state/figures.ts";
import type { OpenSession } from "../state/open-session.ts";
import { usePage } from "./context.ts";
import { loadedPlaces, type Places } from "./loaded.ts";

const hasFailed = signal(false);
let isLoading = false;

async function load(): Promise<void> {
  if (isLoading) return;
  isLoading = true;
  hasFailed.value = false;
  try {
    const [{ places }] = await Promise.all([import("./places.tsx"), styled()]);
    loadedPlaces.value = places;
  } catch {
    hasFailed.value = true;
  }
  isLoading = false;
}

/** Resolves when the styles of these places hold. */
function styled(): Promise<void> {
  return new Promise((resolve, reject) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = "/places.css";
    link.onload = () => resolve();
    link.onerror = () => {
      link.remove();
      reject(new Error("The styles were not loaded."));
    };
    document.head.append(link);
  });
}

function usePlaces(): Places | undefined {
  const { app } = usePage();
  const isConnected = app.connection.value.kind === "connected";
  useEffect(() => {
    if (loadedPlaces.peek() === undefined) void load();
  }, [isConnected]);
  return loadedPlaces.value;
}

interface LaterProps {
  readonly show: (places: Places) => JSX.Element;
  /** Whether it says that it loads; otherwise there is nothing until then. Default: it does. */
  readonly saysSo?: boolean;
}

/** What is shown by code that is loaded when it is first needed. */
export function Later({ show, saysSo = true }: LaterProps): JSX.Element | null {
  const places = usePlaces();
  if (places !== undefined) return show(places);
  return saysSo ? <Loading /> : null;
}

interface WithFiguresProps {
  readonly open: OpenSession;
  /** Whether it says that it loads; otherwise there is nothing until then. */
  readonly saysSo?: boolean;
  children(places: Places, figures: Figures): ComponentChildren;
}

/** What shows the requests or costs of a session. */
export function WithFigures({ open, saysSo = false, children }: WithFiguresProps): JSX.Element | null {
  const places = usePlaces();
  useEffect(() => {
    if (places !== undefined) open.openFigures(places);
  }, [open, places]);
  const figures = open.figures.value;
  if (places !== undefined && figures !== undefined) return <>{children(places, figures)}</>;
  return saysSo ? <Loading /> : null;
}

function Loading(): JSX.Element {
  return (
    <p class="log-edge later">
      {hasFailed.value ? (
        <>
          This part of the page could not be loaded.{" "}
          <button type="button" class="link" onClick={() => void load()}>
            Try again
          </button>
        </>
      ) : (
        "Loading…"
      )}
    </p>
  );
}
