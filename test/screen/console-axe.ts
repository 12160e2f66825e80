import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type axe from "axe-core";
import type { Visit } from "./console-browser.ts";

// The page's policy blocks a script tag, so its source is evaluated.
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Checked {
  /** Selects what may not be wider than its place. */
  readonly boxes: string;
  /** Each selects an element whose fill differs 3:1 from what is behind it. */
  readonly fills?: readonly string[];
  /** Selects what is behind the fills. Default: the page. */
  readonly behind?: string;
}

/** What axe finds in a page, what scrolls sideways, and fills that are too near to their background. */
export async function problems(visit: Visit, checked: Checked): Promise<readonly string[]> {
  if (!(await visit.page.evaluate(() => "axe" in globalThis))) await visit.page.evaluate(axeSource);
  return await visit.page.evaluate(async ({ boxes, fills = [], behind = "body" }: Checked) => {
    const { violations } = await (globalThis as unknown as { axe: typeof axe }).axe.run(document, {
      resultTypes: ["violations"],
    });
    const wide = Array.from(document.querySelectorAll<HTMLElement>(boxes)).filter(
      ({ scrollWidth, clientWidth }) => scrollWidth > clientWidth,
    );
    const luminance = (color: string): number => {
      const [red = 0, green = 0, blue = 0] = (color.match(/[\d.]+/g) ?? []).map((part) => {
        const share = Number(part) / 255;
        return share <= 0.040_45 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const back = luminance(getComputedStyle(document.querySelector(behind) ?? document.body).backgroundColor);
    const pale = fills.filter((selector) => {
      const filled = document.querySelector(selector);
      if (filled === null) return false;
      const front = luminance(getComputedStyle(filled).fill);
      return (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05) < 3;
    });
    return [
      ...violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" ")}`),
      ...wide.map(({ className, tagName }) => `${tagName}.${className} scrolls sideways`),
      ...pale.map((selector) => `the fill of ${selector} is too near to the background`),
    ];
  }, checked);
}
