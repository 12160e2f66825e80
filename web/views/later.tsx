import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { usePage } from "./context.ts";

type Places = typeof import("./places.tsx")["places"];

const loaded = signal<Places | undefined>(undefined);
const hasFailed = signal(false);

async function load(): Promise<void> {
  hasFailed.value = false;
  try {
    const [{ places }] = await Promise.all([import("./places.tsx"), styled()]);
    loaded.value = places;
  } catch {
    hasFailed.value = true;
  }
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

/** A place whose code is loaded when a person first goes to one of these. */
export function Later({ show }: { readonly show: (places: Places) => JSX.Element }): JSX.Element {
  const { app } = usePage();
  const isConnected = app.connection.value.kind === "connected";
  useEffect(() => {
    if (loaded.peek() === undefined) void load();
  }, [isConnected]);
  if (loaded.value !== undefined) return show(loaded.value);
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
