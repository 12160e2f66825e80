import { useRef } from "preact/hooks";

interface PressHandlers {
  onPointerDown(): void;
  onKeyDown(event: KeyboardEvent): void;
  onClick(): void;
}

/**
 * Handlers of a button that acts only on a press that began on it while `isReady`: no key that was already down, held
 * from somewhere else, and no click that began before the button worked. A screen reader's click has no press before it.
 */
export function useFreshPress(isReady: () => boolean, act: () => void): PressHandlers {
  const press = useRef<"fresh" | "early" | undefined>(undefined);
  const begin = (): void => {
    press.current = isReady() ? "fresh" : "early";
  };
  return {
    onPointerDown: begin,
    onKeyDown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      if (event.repeat) event.preventDefault();
      else begin();
    },
    onClick: () => {
      const was = press.current ?? (isReady() ? "fresh" : "early");
      press.current = undefined;
      if (was === "fresh" && isReady()) act();
    },
  };
}
