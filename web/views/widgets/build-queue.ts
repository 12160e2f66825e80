interface Waiting {
  readonly part: Element;
  /** What scrolls. */
  readonly box: Element;
  build(): void;
}

const waiting = new Set<Waiting>();
let isAsked = false;

/**
 * Builds a part of a list in one of the next frames. Each frame builds one, first those next to the middle of the view: so
 * no frame takes long, and a browser has something that it can keep in its place when a part above it gets its height. The
 * returned function cancels it.
 */
export function buildSoon(one: Waiting): () => void {
  waiting.add(one);
  ask();
  return () => waiting.delete(one);
}

function ask(): void {
  if (isAsked || waiting.size === 0) return;
  isAsked = true;
  requestAnimationFrame(() => {
    isAsked = false;
    const [next] = [...waiting].map((one) => ({ one, distance: distanceOf(one) })).sort(byDistance);
    if (next === undefined) return;
    waiting.delete(next.one);
    next.one.build();
    ask();
  });
}

/** How far a part is from the middle of the view, in CSS pixels. */
function distanceOf({ part, box }: Waiting): number {
  const { top, bottom } = part.getBoundingClientRect();
  const view = box.getBoundingClientRect();
  const middle = (view.top + view.bottom) / 2;
  return Math.max(0, top - middle, middle - bottom);
}

function byDistance(a: { readonly distance: number }, b: { readonly distance: number }): number {
  return a.distance - b.distance;
}
